// Builds ../static from src; with --check, fails where the committed files are others.
import { build } from "esbuild";
import { readFileSync, writeFileSync } from "node:fs";

const out = new URL("../static/", import.meta.url);
const result = await build({
  entryPoints: { app: "src/main.tsx" },
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  write: false,
  outdir: "out",
  charset: "utf8",
  loader: { ".css": "css" },
});
const files = Object.fromEntries(
  result.outputFiles.map((f) => [f.path.split("/").pop(), Buffer.from(f.contents)]),
);
for (const name of ["index.html", "icon.svg"]) files[name] = readFileSync(`src/${name}`);
const differing = Object.entries(files).filter(([name, data]) => {
  try {
    return !readFileSync(new URL(name, out)).equals(data);
  } catch {
    return true;
  }
});
if (process.argv.includes("--check")) {
  for (const [name] of differing) console.error(`static/${name}: not what the sources build; run npm run build`);
  process.exit(differing.length ? 1 : 0);
}
for (const [name, data] of differing) writeFileSync(new URL(name, out), data);
for (const [name, data] of Object.entries(files)) console.log(`${name}: ${data.length.toLocaleString("en")} bytes`);
