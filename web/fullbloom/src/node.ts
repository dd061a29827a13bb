/** The package in Node: the module is read from the package's folder on import, so that nothing has to be awaited. */

import { readFileSync } from "node:fs";

import { initSync } from "./module.js";

initSync(readFileSync(new URL("../wasm/fullbloom_wasm_bg.wasm", import.meta.url)));

export * from "./index.js";
