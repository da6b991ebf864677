"use strict";
// For ajv and ajv-formats inside conf, which needs them for its own `schema` option. The profile file has a zod schema.
exports.Ajv2020 = function Ajv() {
  throw new Error("conf was given no schema");
};
