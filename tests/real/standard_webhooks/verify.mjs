// Reads one line of JSON for each question: {secret, headers, body}; answers each with a line: the event, or why not.
import { createInterface } from "node:readline";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.MODULES}/`);
const { Webhook } = require("standardwebhooks");

for await (const line of createInterface({ input: process.stdin })) {
  const { secret, headers, body } = JSON.parse(line);
  try {
    const event = new Webhook(secret).verify(body, headers);
    console.log(JSON.stringify({ id: event.id, type: event.type }));
  } catch (error) {
    console.log(JSON.stringify({ refused: error.message }));
  }
}
