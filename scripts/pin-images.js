// Pins the images of docker-compose.yml and the Dockerfile by digest, with Docker's buildx.
//
//   node scripts/pin-images.js            pins images that have only a tag
//   node scripts/pin-images.js --update   resolves every tag again
//
// After changing a tag, remove the digest after it and run this.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const IMAGE = /((?:^ +image: |^FROM ))([a-z0-9./-]+):([\w.-]+)(@sha256:[0-9a-f]{64})?/gm;
const OWN = 'perdure-worker';
const run = promisify(execFile);

/** The digest of the image's index, which covers every platform. */
async function digestOf(name) {
  const asked = ['buildx', 'imagetools', 'inspect', name, '--format', '{{.Manifest.Digest}}'];
  const { stdout } = await run('docker', asked);
  const digest = stdout.trim();
  if (/^sha256:[0-9a-f]{64}$/.test(digest)) return digest;
  throw new Error(`${name}: expected a digest, got ${digest}`);
}

const digests = new Map();
for (const file of ['docker-compose.yml', 'Dockerfile']) {
  const path = new URL(`../${file}`, import.meta.url);
  let text = await readFile(path, 'utf8');
  for (const [whole, before, image, tag, pinned] of text.matchAll(IMAGE)) {
    if (image === OWN || (pinned !== undefined && !process.argv.includes('--update'))) continue;
    const name = `${image}:${tag}`;
    if (!digests.has(name)) digests.set(name, await digestOf(name));
    text = text.replace(whole, `${before}${name}@${digests.get(name)}`);
    console.log(`${file}: ${name}@${digests.get(name)}`);
  }
  await writeFile(path, text);
}
