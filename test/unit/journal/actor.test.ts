import os from "node:os";
import { syncBuiltinESMExports } from "node:module";
import { expect, test } from "vitest";
import { actorOf, namesOf, ciRunAddress } from "../../../src/journal/actor.ts";

const github = { GITHUB_SERVER_URL: "https://github.com", GITHUB_REPOSITORY: "o/r", GITHUB_RUN_ID: "7" };

test.each<[string, Record<string, string>, string | undefined]>([
  ["no CI variables", {}, undefined],
  ["GitHub", github, "https://github.com/o/r/actions/runs/7"],
  ["GitHub without a run", { ...github, GITHUB_RUN_ID: "" }, undefined],
  ["GitLab", { CI_JOB_URL: "https://gitlab.example.com/g/p/-/jobs/9" }, "https://gitlab.example.com/g/p/-/jobs/9"],
  [
    "GitLab, a pipeline",
    { CI_PIPELINE_URL: "https://gitlab.com/p/-/pipelines/1" },
    "https://gitlab.com/p/-/pipelines/1",
  ],
  ["Jenkins", { BUILD_URL: "http://jenkins:8080/job/x/3/" }, "http://jenkins:8080/job/x/3/"],
  [
    "a credential in it",
    { BUILD_URL: "https://me:secret@ci.example.com/1?token=secret#secret" },
    "https://ci.example.com/1",
  ],
  ["an invalid address", { BUILD_URL: "3" }, undefined],
  ["another scheme", { BUILD_URL: "javascript:alert(1)" }, undefined],
])("the run's URL: %s", (_, env, run) => {
  expect(ciRunAddress(env)).toBe(run);
});

test("an actor matches the user, the host, both, or the run", () => {
  const actor = { user: "ada", host: "desk" };
  expect(namesOf(actor)).toEqual(["ada", "desk", "ada@desk"]);
  expect(namesOf({ ...actor, run: "https://ci.example.com/1" })).toEqual([
    ...namesOf(actor),
    "https://ci.example.com/1",
  ]);
});

test("the current actor has a name, even in a container without a user name", () => {
  const { userInfo } = os;
  const named = { USER: "eve", LOGNAME: "log" };
  try {
    expect(actorOf({ ...named, BUILD_URL: "https://ci/1" })).toEqual({
      user: userInfo().username,
      host: os.hostname(),
      run: "https://ci/1",
    });
    os.userInfo = () => {
      throw new Error("no such user");
    };
    syncBuiltinESMExports();
    expect(actorOf(named).user).toBe("eve");
    expect(actorOf({ ...named, USER: "" }).user).toBe("log");
    expect(actorOf({}).user).toBe("unknown");
  } finally {
    os.userInfo = userInfo;
    syncBuiltinESMExports();
  }
});
