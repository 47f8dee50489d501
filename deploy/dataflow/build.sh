#!/usr/bin/env bash
# Build and push the image of workers and driver, and the flex template on top of it.
#   PROJECT=my-project REGION=europe-west4 BUCKET=my-bucket deploy/dataflow/build.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${PROJECT:?name of the Cloud project}" "${REGION:?region of the registry}"
: "${BUCKET:?bucket for the template file}"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
beam=$(sed -n 's/^apache-beam==//p' constraints.txt)
repository=$REGION-docker.pkg.dev/$PROJECT/curation
for target in worker template; do
  docker build -f deploy/Dockerfile --target "$target" -t "$repository/$target:$version" \
    --build-arg BASE="apache/beam_python3.11_sdk:$beam" --build-arg EXTRAS=dataflow,s3 .
  docker push "$repository/$target:$version"
done
gcloud dataflow flex-template build "gs://$BUCKET/templates/curation-$version.json" \
  --project "$PROJECT" \
  --image "$repository/template:$version" \
  --sdk-language PYTHON \
  --metadata-file deploy/dataflow/metadata.json
echo "workers: --sdk_container_image=$repository/worker:$version"
