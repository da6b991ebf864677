// SIGKILL at every file and network call of `keys create`, `keys rotate` and `keys rotate --by-replacement`, then the printed
// steps: one POST at most, no orphan, no unreported loss of a secret.
import { killTest } from "./harness.ts";
import { create, keyScenes, replace, rotate } from "./key-scenes.ts";

const scene = keyScenes();

killTest(scene(create), { sample: 3 });
killTest(scene(rotate), { sample: 3 });
killTest(scene(replace), { sample: 3 });
