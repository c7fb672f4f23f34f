import { createLiveHub } from '../../src/live/hub.js';
import { openAiModel } from '../../src/models/openai/model.js';
import type { ModelDelta, ModelRequest } from '../../src/models/model.js';
import { replyText } from '../../src/testing/replies.js';
import { startStub } from '../../src/testing/stub-server.js';
import type { Bench } from '../kit/bench.js';
import { interleave, medians } from '../kit/interleave.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

/** About a thousand deltas. */
const TEXT = 'word '.repeat(780);
const REQUEST: ModelRequest = {
  model: 'stub',
  instructions: '',
  messages: [{ role: 'user', text: 'go' }],
  tools: [],
  toolChoice: 'auto',
  settings: {},
};

/**
 * Compares a reply that is streamed at full speed into a hub without readers with one that is not
 * streamed. Both run in one process: between two processes, noise would hide the difference.
 */
export async function measureUnread({ quick }: Pick<Bench, 'quick'>): Promise<Row> {
  const stub = await startStub({ keep: 1 });
  const model = openAiModel({ apiKey: 'none', baseUrl: stub.baseUrl, stream: true });
  const hub = createLiveHub();
  const walls: number[] = [];
  let count = 0;
  const cpuMs = async (onDelta: (delta: ModelDelta) => void) => {
    stub.script(replyText(TEXT, { sse: { charactersPerEvent: 4 } }));
    const [before, begun] = [process.cpuUsage(), performance.now()];
    await model.call(REQUEST, { signal: new AbortController().signal, onDelta });
    const { user, system } = process.cpuUsage(before);
    walls.push(performance.now() - begun);
    return (user + system) / 1_000;
  };
  const place = { segment: 's', activity: 'a', attempt: 1, turn: 1 };
  const both = {
    perdure: async () => {
      const writer = hub.begin('run', { ...place, step: (count += 1) });
      const spent = await cpuMs((delta) => writer.push(delta));
      writer.end();
      return spent;
    },
    bare: () => cpuMs(() => undefined),
  };
  await interleave(20, both);
  walls.length = 0;
  const compared = await interleave(quick ? 40 : 150, both);
  await stub.close();
  const { perdure, bare } = medians(compared);
  const share = ((perdure - bare) / median(walls)) * 100;
  return {
    name: 'live/no-readers',
    what: 'processor time of a core that live streams take at full speed without a reader',
    value: share,
    unit: '%',
    bar: { atMost: 1 },
    samples: [share],
    detail: `${show(perdure)} against ${show(bare)} ms for 975 deltas in ${show(median(walls))} ms`,
  };
}
