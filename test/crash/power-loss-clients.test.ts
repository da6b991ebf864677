// Power cuts, which are worse than crashes: unsynced data may be lost. Here during a command that creates or replaces a client.
import { create, createTo, createToProfile, replace, rotate } from "./client-scenes.ts";
import { powerCuts } from "./power-loss.ts";
import { clientWork, together } from "./power-loss-scenes.ts";
import { fileAndProfile } from "./secret-places.ts";

powerCuts("clients", [
  ...[create, createToProfile, createTo(fileAndProfile), rotate, replace].map(clientWork),
  together,
]);
