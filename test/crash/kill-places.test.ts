// The same crash loop with the other places that a secret may go to.
import { killTest } from "./kill-loop.ts";
import { createToJson, createToOutput, createToProfile } from "./oauth-client-scenes.ts";

killTest(createToJson, { sample: 6 });
killTest(createToOutput, { sample: 8 });
killTest(createToProfile, { sample: 14 });
