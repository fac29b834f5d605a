// Builds the page into the folder that it is given, or `dist`: what a browser loads, but the viewer, which is Rust.
import { copyFile, mkdir } from "node:fs/promises";
import process from "node:process";
import { build } from "esbuild";

const [folder = "dist"] = process.argv.slice(2);
await mkdir(folder, { recursive: true });
await build({
  entryPoints: { page: "src/main.ts", worker: "src/worker.ts", loudspeaker: "src/loudspeaker.ts" },
  bundle: true,
  minify: true,
  format: "esm",
  target: ["chrome120", "firefox121"],
  legalComments: "none",
  logLevel: "warning",
  outdir: folder,
});
for (const name of ["index.html", "page.css"]) {
  await copyFile(name, `${folder}/${name}`);
}
