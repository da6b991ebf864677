import { bundle } from "../rolldown.config.mts";

/** The program is one file without dependencies. */
export default bundle({ integ: "scripts/executable/main.ts" }, { dir: "build/executable", codeSplitting: false });
