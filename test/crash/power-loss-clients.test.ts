// The power goes out, which is more than a crash: what was not synced may be there or not. Here under a command that makes or
// replaces a client.
import { create, createTo, createToProfile, replace, rotate } from "./client-scenes.ts";
import { powerCuts } from "./power-loss.ts";
import { clientWork, together } from "./power-loss-scenes.ts";
import { fileAndProfile } from "./secret-places.ts";

powerCuts("clients", [
  ...[create, createToProfile, createTo(fileAndProfile), rotate, replace].map(clientWork),
  together,
]);
