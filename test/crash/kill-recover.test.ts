// SIGKILL at every file and network call of `journal recover`, then `journal recover`: nothing doubled, nothing lost.
import { killTest } from "./kill-loop.ts";
import { recover, recoverUnsent } from "./oauth-client-scenes.ts";

killTest(recover, { sample: 16 });
killTest(recoverUnsent, { sample: 8 });
