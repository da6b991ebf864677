import type { InputOptions, OutputOptions } from "rolldown";
import { bundledLicenses } from "./bundled-licenses.mts";
import { sbom } from "./sbom.mts";

export function bundle(input: Record<string, string>, output: OutputOptions): InputOptions & { output: OutputOptions } {
  return {
    input,
    platform: "node",
    // Optional packages are not bundled. pg-cloudflare and pg-native are optional packages of pg.
    external: ["@napi-rs/keyring", "fs-native-extensions", "pg-cloudflare", "pg-native"],
    plugins: [bundledLicenses(), sbom()],
    output: {
      // CommonJS starts faster: `require` loads less of Node for built-in modules, and no ES module loader is needed.
      format: "cjs",
      dynamicImportInCjs: false,
      entryFileNames: "[name].cjs",
      chunkFileNames: "[name]-[hash].cjs",
      exports: "named",
      minify: true,
      cleanDir: true,
      ...output,
    },
  };
}

/** Splits the npm package at each `import()`. */
export default bundle({ main: "src/main.ts" }, { dir: "dist" });
