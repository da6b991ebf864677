import type { InputOptions, OutputOptions } from "rolldown";
import { bundledLicenses } from "./bundled-licenses.mts";
import { sbom } from "./sbom.mts";

/** The program, and beside it the licences and the list of the packages in it. */
export function bundle(input: Record<string, string>, output: OutputOptions): InputOptions & { output: OutputOptions } {
  return {
    input,
    platform: "node",
    // Optional packages stay outside, and what pg loads on Cloudflare or for its native client.
    external: ["@napi-rs/keyring", "fs-native-extensions", "pg-cloudflare", "pg-native"],
    plugins: [bundledLicenses(), sbom()],
    output: {
      // `require` of a built-in module loads less of Node than `import`, and a start does without the loader of ES modules.
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

/** As npm installs it: split where the program calls `import()`. */
export default bundle({ main: "src/main.ts" }, { dir: "dist" });
