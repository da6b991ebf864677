// The same crash loop with the other places that a secret may go to.
import { killTest } from "./kill-loop.ts";
import { createToCommand, createToJson, createToOutput, createToProfile } from "./oauth-client-scenes.ts";

killTest(createToJson, { sample: 6 });
killTest(createToOutput, { sample: 12 });
killTest(createToProfile, { sample: 14 });
killTest(createToCommand, { sample: 12 });
