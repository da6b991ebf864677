import * as keys from "./key-scenes.ts";
import { powerCuts } from "./power-loss.ts";
import { keyWork } from "./power-loss-scenes.ts";

powerCuts("keys", [keyWork(keys.create, 1), keyWork(keys.rotate, 2), keyWork(keys.replace, 3)], { settles: true });
