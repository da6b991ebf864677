import { killTest } from "./harness.ts";
import { create, keyScenes, replace, rotate } from "./key-scenes.ts";

const scene = keyScenes();

killTest(scene(create), { sample: 3 });
killTest(scene(rotate), { sample: 3 });
killTest(scene(replace), { sample: 3 });
