// A PDS and the directory of DIDs that it needs, on loopback. MODULES is the folder with node_modules; both keep what they
// keep in FOLDER. Ends when its standard input does, so that nothing is left of a test that was killed.

import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const { MODULES, FOLDER, PLC_PORT, PDS_PORT, JWT_SECRET, ADMIN_PASSWORD, ROTATION_KEY } = process.env;
const require = createRequire(join(MODULES, "package.json"));
const { PDS, envToCfg, envToSecrets } = require("@atproto/pds");
const { Database: Directory, PlcServer } = require("@did-plc/server");

// Express would listen on every address of the machine.
function stayLocal(app) {
  const listen = app.listen.bind(app);
  app.listen = (port) => listen(port, "127.0.0.1");
}

const plc = PlcServer.create({ db: Directory.mock(), port: Number(PLC_PORT) });
stayLocal(plc.app);
await plc.start();

for (const name of ["blobs", "blobs-coming"]) mkdirSync(join(FOLDER, name), { recursive: true });
const settings = {
  port: Number(PDS_PORT),
  hostname: "localhost",
  didPlcUrl: `http://localhost:${PLC_PORT}`,
  dataDirectory: FOLDER,
  blobstoreDiskLocation: join(FOLDER, "blobs"),
  blobstoreDiskTmpLocation: join(FOLDER, "blobs-coming"),
  // As on Bluesky's own servers, so that a session tells where its account lives.
  enableDidDocWithSession: true,
  inviteRequired: false,
  // It allows plain http and addresses of this machine.
  devMode: true,
  rateLimitsEnabled: process.env.RATE_LIMITS === "1",
  jwtSecret: JWT_SECRET,
  adminPassword: ADMIN_PASSWORD,
  plcRotationKeyK256PrivateKeyHex: ROTATION_KEY,
};
const pds = await PDS.create(envToCfg(settings), envToSecrets(settings));
stayLocal(pds.app);
await pds.start();

console.log(JSON.stringify({ ready: true, url: pds.ctx.cfg.service.publicUrl, did: pds.ctx.cfg.service.did }));

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
