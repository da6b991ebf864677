// SIGKILL at every file and network call of a creation, whatever place its secret goes to, then `journal recover`: nothing
// doubled, nothing lost.
import {
  clientScenes,
  create,
  createCut,
  createToCommand,
  createToJson,
  createToOutput,
  createToProfile,
  replace,
} from "./client-scenes.ts";
import { killTest } from "./harness.ts";

const scene = clientScenes();

killTest(scene(create), { sample: 26 });
killTest(scene(createToJson), { sample: 4 });
killTest(scene(createToOutput), { sample: 6 });
killTest(scene(createToProfile), { sample: 6 });
killTest(scene(createToCommand), { sample: 6 });
killTest(scene(createCut), { sample: 5 });
killTest(scene(replace), { sample: 9 });
