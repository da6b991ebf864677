// SIGKILL at every file and network call of `oauth-clients create`, then `journal recover`: nothing doubled, nothing lost.
import { killTest } from "./kill-loop.ts";
import { create } from "./oauth-client-scenes.ts";

killTest(create, { sample: 24 });
