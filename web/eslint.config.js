import js from "@eslint/js";
import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["**/dist/**", "**/wasm/**", "**/node_modules/**", "**/test/*.js", "**/bench/*.js", "eslint.config.js", "vitest.config.ts"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  { languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } } },
  { rules: { "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }] } },
);
