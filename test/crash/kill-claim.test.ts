// SIGKILL at every file and network call of `journal claim`: the secret is in its place or still kept, never neither, and
// the same claim typed again ends it.
import { killTest } from "./kill-loop.ts";
import { claim } from "./oauth-client-scenes.ts";

killTest(claim, { sample: 24 });
