import { clientScenes, recover, recoverUnsent, rotate, rotateToThree } from "./client-scenes.ts";
import { killTest } from "./harness.ts";

const scene = clientScenes();

killTest(scene(rotate), { sample: 3 });
killTest(scene(rotateToThree), { sample: 2 });
killTest(scene(recover), { sample: 2 });
killTest(scene(recoverUnsent), { sample: 0 });
