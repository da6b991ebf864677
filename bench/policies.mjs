// Measures a plan of many items, and concurrent rotations against sequential ones.
import { addCopies, emptyJournal, templateNumber } from "./journals.mjs";
import { sideBySide, spread, timed } from "./measure.mjs";
import { startProcess } from "./workplace.mjs";

function policyFile(workplace, { name, items }) {
  const texts = items.map(
    ({ name: item, account, scopes }) => `  ${item}:
    service_account: ${account}
    scopes: [${scopes.join(", ")}]
    rotate: { every: 60d, overlap: 0s }
    secret: { file: ${item}.json, format: json }
`,
  );
  const head =
    "version: 1\nid: pol_of_this_test\nunmanaged: ignore\nlimits: { changes_per_run: 100 }\noauth_clients:\n";
  return workplace.write(name, head + texts.join(""));
}

/** A plan sends a GET for every client. */
export async function planned({ workplace, plan }) {
  const env = emptyJournal(workplace, "planned");
  const items = Array.from({ length: plan.items }, (_, index) => ({
    name: `item-${templateNumber + index}`,
    account: `sa_${templateNumber + index}`,
    scopes: ["entity:read"],
  }));
  const words = (file) => ["plan", "--json", "--file", file];
  const [few, many] = [items.slice(0, 1), items].map((some) =>
    policyFile(workplace, { name: `planned-${some.length}/integ.yaml`, items: some }),
  );
  const adopted = ["adopt", "oauth-client", `oac_${templateNumber}_0`, "--name", items[0].name];
  workplace.run([...adopted, "--file", many], env);
  addCopies(workplace, { env, count: items.length - 1 });
  const actions = new Set(JSON.parse(workplace.run(words(many), env)).data.map(({ action }) => action));
  if (actions.size !== 1 || !actions.has("none"))
    throw new Error(`a plan without changes has ${[...actions].join(", ")}`);
  const commands = { few: workplace.integ(words(few), env), many: workplace.integ(words(many), env) };
  const results = await sideBySide(commands, { rounds: plan.planRounds });
  return [
    {
      what: `plan of ${plan.items.toLocaleString("en")} items`,
      against: "plan of 1 item",
      ratio: results.ratio("many", "few"),
      seconds: results.seconds("many"),
      goal: { mostSeconds: 3 },
    },
  ];
}

const together = 20;

/** Each request has 50 ms of latency, as in a network. */
export async function rotations({ workplace, plan }) {
  const service = await sandbox(workplace);
  let turn = 0;
  /** Each run requests other scopes than the run before, so that every item is rotated. */
  const apply = (parallel) => {
    const scopes = turn % 2 === 0 ? ["entity:read"] : ["entity:read", "organization:read"];
    turn += 1;
    const items = Array.from({ length: together }, (_, index) => ({
      name: `item-${index}`,
      account: service.accounts[index % service.accounts.length],
      scopes,
    }));
    const file = policyFile(workplace, { name: "rotations/integ.yaml", items });
    return timed(
      workplace.integ(["apply", "--yes", "--quiet", "--parallel", String(parallel), "--file", file], service.env),
    );
  };
  try {
    await apply(together);
    const [seconds, ratios] = [[], []];
    for (let round = 0; round < plan.rotationRounds; round += 1) {
      const elapsed = {};
      for (const parallel of round % 2 === 0 ? [1, together] : [together, 1]) elapsed[parallel] = await apply(parallel);
      seconds.push(elapsed[1]);
      ratios.push(elapsed[1] / elapsed[together]);
    }
    return [
      {
        what: `${together} rotations in turn, 50 ms a request`,
        against: `${together} at the same time`,
        ratio: spread(ratios),
        seconds: spread(seconds),
        goal: { least: 3 },
      },
    ];
  } finally {
    await service.stop();
  }
}

/** The service is a sandbox, because a rotation proves the new secret with a token. */
async function sandbox(workplace) {
  const words = ["sandbox", "start", "-o", "json", "--fault", "* /* latency=50ms"];
  const { command, env } = workplace.integ(words, { INTEG_STATE_DIR: workplace.path("sandbox") });
  const { text, stop } = await startProcess(command, { env, isComplete: (printed) => printed.endsWith("\n") });
  const { us } = JSON.parse(text);
  return {
    stop,
    accounts: [us.service_account_id, us.caller_service_account_id],
    env: {
      INTEG_STATE_DIR: workplace.path("rotations", "state"),
      INTEG_REGION: "us",
      INTEG_BASE_URL: us.base_url,
      INTEG_API_KEY: us.api_key,
      INTEG_TOKEN_ENDPOINT: us.token_endpoint,
    },
  };
}
