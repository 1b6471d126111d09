// A receiver on 127.0.0.1 that answers 202 to a request whose signature and digest are good, and 401 and why to any other.
// Arguments: pairs of a key id and a PEM file. Prints its port, then serves until its standard input ends.

import crypto from "node:crypto";
import fs from "node:fs";
import http from "node:http";
import httpSignature from "@peertube/http-signature";
import { createVerifier, httpbis } from "http-message-signatures";

const keys = new Map();
for (let at = 2; at + 1 < process.argv.length; at += 2) {
  keys.set(process.argv[at], crypto.createPublicKey(fs.readFileSync(process.argv[at + 1])));
}

function publicKey(id) {
  const key = keys.get(id);
  if (!key) throw new Error(`unknown key ${id}`);
  return key;
}

function sameDigest(expected, body) {
  if (expected !== crypto.createHash("sha256").update(body).digest("base64")) throw new Error("the body has another digest");
}

function verifyCavage(request, body) {
  const parsed = httpSignature.parseRequest(request, {
    authorizationHeaderName: "signature",
    clockSkew: 60,
    headers: ["(request-target)", "host", "date", "digest"],
    algorithms: ["rsa-sha256"],
  });
  const pem = publicKey(parsed.params.keyId).export({ type: "spki", format: "pem" });
  if (!httpSignature.verifySignature(parsed, pem)) throw new Error("the signature is not good");
  const digest = /^SHA-256=(.+)$/.exec(request.headers.digest ?? "");
  sameDigest(digest?.[1], body);
}

async function verifyRfc9421(request, body) {
  const message = { method: request.method, url: `http://${request.headers.host}${request.url}`, headers: request.headers };
  const good = await httpbis.verifyMessage(
    {
      keyLookup: async ({ keyid }) => {
        const key = publicKey(keyid);
        const alg = key.asymmetricKeyType === "ed25519" ? "ed25519" : "rsa-v1_5-sha256";
        return { id: keyid, algs: [alg], verify: createVerifier(key, alg) };
      },
      maxAge: 60,
      tolerance: 5,
      requiredParams: ["created", "keyid"],
      requiredFields: ["@method", "@target-uri", "date", "content-digest"],
    },
    message,
  );
  if (good !== true) throw new Error("the signature is not good");
  const digest = /^sha-256=:(.+):$/.exec(request.headers["content-digest"] ?? "");
  sameDigest(digest?.[1], body);
}

const server = http.createServer(async (request, response) => {
  try {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const verify = request.headers["signature-input"] ? verifyRfc9421 : verifyCavage;
    await verify(request, Buffer.concat(chunks));
    response.writeHead(202).end("verified");
  } catch (error) {
    response.writeHead(401).end(String(error?.message ?? error));
  }
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.resume().on("end", () => process.exit(0));
