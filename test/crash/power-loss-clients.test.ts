// Cuts the power during a command that creates or replaces a client. Unlike a kill, a power cut may lose unsynced data.
import { create, createTo, createToProfile, replace, rotate } from "./client-scenes.ts";
import { powerCuts } from "./power-loss.ts";
import { clientWork, together } from "./power-loss-scenes.ts";
import { fileAndProfile } from "./secret-places.ts";

powerCuts("clients", [
  ...[create, createToProfile, createTo(fileAndProfile), rotate, replace].map(clientWork),
  together,
]);
