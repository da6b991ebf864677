import { createInLongJournal } from "./client-scenes.ts";
import { powerCuts } from "./power-loss.ts";
import {
  clientWork,
  exported,
  outFile,
  profileAdd,
  profileEdit,
  profileRemove,
  prune,
  refusal,
  revocation,
} from "./power-loss-scenes.ts";

powerCuts("files", [
  clientWork(createInLongJournal),
  refusal,
  revocation,
  profileAdd,
  profileEdit,
  profileRemove,
  prune,
  outFile,
  exported,
]);
