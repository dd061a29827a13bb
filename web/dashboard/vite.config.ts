import { defineConfig } from "vite";

// Relative addresses: the page also works behind a proxy that serves it under a path of its own.
export default defineConfig({
  base: "./",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: { target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: false },
});
