// Kills creations at their file and network calls, for each destination except secret stores.
import {
  clientScenes,
  create,
  createCut,
  createToCommand,
  createToJson,
  createToOutput,
  createToProfile,
  createToThree,
  replace,
} from "./client-scenes.ts";
import { killTest } from "./harness.ts";

const scene = clientScenes();

killTest(scene(create), { sample: 4 });
killTest(scene(createToJson), { sample: 0 });
killTest(scene(createToOutput), { sample: 1 });
killTest(scene(createToProfile), { sample: 2 });
killTest(scene(createToCommand), { sample: 2 });
killTest(scene(createToThree), { sample: 2 });
killTest(scene(createCut), { sample: 1 });
killTest(scene(replace), { sample: 2 });
