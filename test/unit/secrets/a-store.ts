// Uses a store as a command does: prepares, delivers, and checks again by the record.
import type { Transport } from "../../../src/api/http/exchange.ts";
import { Failure } from "../../../src/errors.ts";
import { type Destination, type MayReplace, type SingleRecord, placesOf } from "../../../src/secrets/destination.ts";
import { destinationFor, type DestinationTools, rememberedDestination } from "../../../src/secrets/registry.ts";
import { known } from "../../support/known-places.ts";
import { transportTo } from "../api/peer.ts";
import { canary, client, delivery } from "./a-secret.ts";

export interface StoreSetup {
  readonly tools: DestinationTools;
  record: SingleRecord | undefined;
}

const opened: Transport[] = [];

export function closeConnections(): void {
  for (const transport of opened.splice(0)) transport.close();
}

export function setUp(
  env: Readonly<Record<string, string | undefined>>,
  more: Partial<DestinationTools> = {},
): StoreSetup {
  const http: DestinationTools["http"] = async ({ ca }) => {
    const transport = transportTo({ ca, timeoutMs: 3000 });
    opened.push(transport);
    return transport;
  };
  const tools: DestinationTools = {
    env,
    http,
    sleep: async () => {},
    ...known,
    cwd: "/",
    stdoutFd: 1,
    print: () => Promise.reject(new Error("nothing is printed here")),
    onStderr: () => {},
    profiles: () => Promise.reject(new Error("no profile is needed")),
    ...more,
  };
  return { tools, record: undefined };
}

/** @param may decides if existing content may be replaced; without it, the content is not read */
export async function prepared(at: StoreSetup, to: string, may?: MayReplace): Promise<Destination> {
  const destination = await destinationFor({ to: [{ kind: "store", to }] }, at.tools);
  at.record = placesOf(await destination.check())[0];
  at.record = placesOf(await destination.prepare("6k2f9", may && { may }))[0];
  return destination;
}

export async function deliver(at: StoreSetup, destination: Destination, may = delivery.may): Promise<void> {
  const record: typeof delivery.record = async (now) => void (at.record = placesOf(now)[0]);
  await destination.deliver(client, { ...delivery, may, record });
}

export async function isFound(at: StoreSetup): Promise<boolean> {
  if (at.record === undefined) return false;
  const profiles = () => Promise.reject(new Error("no profile is needed"));
  return (await rememberedDestination(at.record, { ...at.tools, profiles })).completeDelivery(async () => {});
}

/** @returns `delivered`, or the failure's kind and message, which must not contain the secret */
export async function endOf(work: () => Promise<unknown>): Promise<string> {
  try {
    await work();
    return "delivered";
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const text = `${error.kind}: ${error.message}`;
    if (JSON.stringify([text, error.details]).includes(canary))
      throw new Error("the secret is in the failure", { cause: error });
    return text;
  }
}
