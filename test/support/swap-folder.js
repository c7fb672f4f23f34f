// Repeatedly replaces a folder with a link and restores it, until its input ends.
import { renameSync, rmSync, symlinkSync } from 'node:fs';

const [folder, outside] = process.argv.slice(2);
let isOver = false;
process.stdin.on('end', () => (isOver = true)).resume();
process.stdout.write('swapping\n');

/**
 * A writer may have recreated the folder meanwhile. If so, it is removed, and the step is repeated.
 */
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
