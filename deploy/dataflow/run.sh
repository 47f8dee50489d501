#!/usr/bin/env bash
# A whole recipe on Dataflow, job after job; the same command resumes it.
#   PROJECT=my-project REGION=europe-west4 BUCKET=my-bucket deploy/dataflow/run.sh llama3 \
#     --input 'gs://my-bucket/crawl/*.warc.gz' --output gs://my-bucket/runs/first
# The driver waits for each job: start it where it can stay, on a small VM or as a Cloud Run job.
set -euo pipefail
cd "$(dirname "$0")/../.."

: "${PROJECT:?name of the Cloud project}" "${REGION:?region of the workers}"
: "${BUCKET:?bucket for temporary files}"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' pyproject.toml)
exec curate run "$@" -- \
  --runner=DataflowRunner \
  --project="$PROJECT" \
  --region="$REGION" \
  --temp_location="gs://$BUCKET/tmp" \
  --sdk_container_image="$REGION-docker.pkg.dev/$PROJECT/curation/worker:$version" \
  --worker_machine_type="${MACHINE:-n2-standard-4}" \
  --max_num_workers="${WORKERS:-100}" \
  --disk_size_gb=50
