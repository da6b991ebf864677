// Text of one byte a character in what the bundler writes.
import type { Plugin } from "rolldown";

/** Text beyond ASCII makes V8 hold and read a whole file in two bytes a character. */
export function onlyAscii(): Plugin {
  return {
    name: "only-ascii",
    generateBundle(_options, bundle) {
      for (const chunk of Object.values(bundle)) {
        if (chunk.type !== "chunk") continue;
        chunk.code = chunk.code.replaceAll(
          /[^\0-\x7f]/g,
          (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
        );
      }
    },
  };
}
