// SIGKILL at every call between the deliveries to three and to five destinations, secret stores among them, then recovery:
// every destination has the current secret, Vault has each secret once, and the old client was not revoked before that.
import { stayInThisProcess } from "../support/program.ts";
import { isMissing } from "../support/tools.mjs";
import { clientScenes, rotateTo } from "./client-scenes.ts";
import { deliveryPoints, killTest } from "./harness.ts";
import { storePlaces } from "./store-places.ts";

const scene = clientScenes();
const { withFile, withAll, withCluster } = storePlaces();
const deliveries = { of: deliveryPoints, isDistinct: true };

// The killed command had its own process; its recovery is judged by the result.
stayInThisProcess();

if (!isMissing("libsodium")) {
  killTest(scene(rotateTo(withFile)), { sample: 2, ...deliveries });
  killTest(scene({ ...rotateTo(withAll), childKilled: [1, 12] }), { sample: 2, ...deliveries });
}

// kubectl alone makes more calls than all others, and has nothing to recover.
if (!isMissing("kubectl", "openssl"))
  killTest(scene({ ...rotateTo(withCluster), isOwn: true }), { sample: 2, ...deliveries });
