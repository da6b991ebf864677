// Kills deliveries to several destinations, some of them secret stores.
import { stayInThisProcess } from "../support/program.ts";
import { isMissing } from "../support/tools.mjs";
import { clientScenes, rotateTo } from "./client-scenes.ts";
import { deliveryPoints, killTest } from "./harness.ts";
import { storePlaces } from "./store-places.ts";

const scene = clientScenes();
const { withFile, withAll, withCluster } = storePlaces();
const deliveries = { of: deliveryPoints, isDistinct: true };

stayInThisProcess();

if (!isMissing("libsodium")) {
  killTest(scene(rotateTo(withFile)), { sample: 2, ...deliveries });
  killTest(scene({ ...rotateTo(withAll), childKilled: [1, 12] }), { sample: 2, ...deliveries });
}

// The calls of kubectl are not points, because they outnumber all others and leave no state to recover.
if (!isMissing("kubectl", "openssl"))
  killTest(scene({ ...rotateTo(withCluster), ownCallsOnly: true }), { sample: 2, ...deliveries });
