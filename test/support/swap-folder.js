// Keeps putting a link in the place of a folder and the folder back, until its input ends.
import { renameSync, rmSync, symlinkSync } from 'node:fs';

const [folder, outside] = process.argv.slice(2);
let isOver = false;
process.stdin.on('end', () => (isOver = true)).resume();
process.stdout.write('swapping\n');

/** Whoever writes may have made the folder anew meanwhile: then it is removed, and the step repeated. */
const insist = (step) => {
  for (;;) {
    try {
      rmSync(folder, { recursive: true, force: true });
      step();
      return;
    } catch {}
  }
};
const swap = () => {
  for (let turn = 0; turn < 50; turn += 1) {
    renameSync(folder, `${folder}.away`);
    insist(() => symlinkSync(outside, folder));
    insist(() => renameSync(`${folder}.away`, folder));
  }
  if (!isOver) setImmediate(swap);
};
swap();
