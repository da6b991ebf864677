import { bundle } from "../rolldown.config.mts";

/** A single executable can contain only one script. */
export default bundle({ integ: "scripts/executable/main.ts" }, { dir: "build/executable", codeSplitting: false });
