import { defineConfig } from "rolldown";
import { bundledLicenses } from "./bundled-licenses.mts";

/**
 * One bundle, split by `import()`: CommonJS, because `require("node:http")` leaves Node's own fetch unloaded where
 * `import` of it does not, and because a CommonJS entry skips the ES module loader at every start.
 */
export default defineConfig({
  input: { main: "src/main.ts" },
  platform: "node",
  plugins: [bundledLicenses()],
  external: [/^node:/, "@napi-rs/keyring", "fs-native-extensions", "pg"],
  output: {
    dir: "dist",
    format: "cjs",
    entryFileNames: "[name].cjs",
    chunkFileNames: "[name]-[hash].cjs",
    cleanDir: true,
    minify: true,
    exports: "named",
  },
});
