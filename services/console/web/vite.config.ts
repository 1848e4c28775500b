import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// The API that `npm run dev` passes requests on to.
const api = process.env["LECTERN_URL"] ?? "http://127.0.0.1:8080";

export default defineConfig(({ command }) => ({
  // The files name each other by relative addresses, because the service puts them in a folder that it names after all of
  // them.
  base: command === "serve" ? "/console/" : "./",
  resolve: { alias: { "@lectern/client": here("../../../client/typescript/src/index.ts") } },
  build: {
    outDir: here("../internal/site/dist"),
    emptyOutDir: true,
    target: "es2022",
    // Everything is a file of its own: the Content-Security-Policy allows neither inline scripts nor data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    license: { fileName: "licenses.txt" },
    // Names without hashes: a change of the source changes the files and adds none.
    rolldownOptions: {
      output: { entryFileNames: "assets/[name].js", chunkFileNames: "assets/[name].js", assetFileNames: "assets/[name][extname]" },
    },
  },
  worker: { format: "es" },
  server: { proxy: { "/projects": api } },
}));
