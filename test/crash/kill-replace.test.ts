// SIGKILL at every file and network call of `oauth-clients create --replace-lost-secret`, then `journal recover`: nothing doubled, nothing lost.
import { killTest } from "./kill-loop.ts";
import { replace } from "./oauth-client-scenes.ts";

killTest(replace, { sample: 20 });
