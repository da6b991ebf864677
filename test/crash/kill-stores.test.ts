// SIGKILL at every call between the deliveries to three and to five places, secret stores among them, then recovery: every place
// has the current secret, Vault has each secret once, and the old client was not revoked before that.
import { sodiumAbsent } from "../support/sodium.ts";
import { clientScenes, rotateTo } from "./client-scenes.ts";
import { deliveryPoints, killTest } from "./harness.ts";
import { storePlaces } from "./store-places.ts";

if (sodiumAbsent) console.warn(`skipped: deliveries to stores, killed: ${sodiumAbsent}`);
else {
  const scene = clientScenes();
  const { withFile, withAll } = storePlaces();
  killTest(scene(rotateTo(withFile)), { sample: 5, of: deliveryPoints });
  killTest(scene({ ...rotateTo(withAll), childKilled: 12 }), { sample: 5, of: deliveryPoints });
}
