// SIGKILL at every file and network call of `oauth-clients rotate`, then `journal recover`: nothing doubled, nothing lost.
import { killTest } from "./kill-loop.ts";
import { rotate } from "./oauth-client-scenes.ts";

killTest(rotate, { sample: 28 });
