import { randomUUID } from 'node:crypto';
import { tools } from '../../examples/assistant/tools.js';
import { toAgentDefinition } from '../../src/agents/agent-definition.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import { shownTools } from '../../src/core/transcript/catalog.js';
import { estimateTokens } from '../../src/core/text/text.js';
import type { Bench } from '../kit/bench.js';
import { interleave, medians, ratios } from '../kit/interleave.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

interface Compared {
  readonly name: string;
  readonly what: string;
  /** The hand-written workflow, and the input of perdure's. */
  readonly bare: string;
  readonly input: object;
  readonly repeats: number;
}

/** Compares graphs with the same activities in a hand-written workflow. */
export async function measureGraphs(bench: Bench): Promise<readonly Row[]> {
  const perdure = await bench.worker('perdure');
  const bare = await bench.worker('bare');
  const timed = async (workflow: string, queue: string, args: object[]): Promise<number> => {
    const begun = performance.now();
    const options = { taskQueue: queue, workflowId: randomUUID(), args };
    const handle = await bench.client.workflow.start(workflow, options);
    await handle.result();
    return performance.now() - begun;
  };
  const compare = async (given: Compared): Promise<Row> => {
    const both = {
      perdure: () => timed('agent', perdure.queue, [given.input]),
      bare: () => timed(given.bare, bare.queue, []),
    };
    await interleave(3, both);
    const compared = await interleave(given.repeats, both);
    const found = medians(compared);
    return {
      name: given.name,
      what: given.what,
      value: median(ratios(compared)),
      unit: 'x',
      bar: { atMost: 1.15 },
      samples: ratios(compared),
      detail: `${show(found.perdure)} against ${show(found.bare)} ms`,
    };
  };
  const rows = [
    await compare({
      name: 'graphs/three',
      what: 'three run nodes against three activities',
      bare: 'threeActivities',
      input: { agent: 'three', input: {} },
      repeats: bench.quick ? 10 : 40,
    }),
    await compare({
      name: 'graphs/wide-plan',
      what: 'a plan of 200 actions, 50 wide, against the same by hand',
      bare: 'widePlan',
      input: { agent: 'wide', message: 'go' },
      repeats: bench.quick ? 3 : 8,
    }),
    toolTokens(),
  ];
  await Promise.all([perdure.end(), bare.end()]);
  return rows;
}

/** The size of a planner's tools in each of its prompts. */
function toolTokens(): Row {
  const base = { name: 'x', instructions: 'x', tools };
  const tokensOf = (exposure: 'all' | 'catalog'): number => {
    const agent = defineAgent({ ...base, toolExposure: exposure });
    const definition = toAgentDefinition(agent, { model: 'x', tools: agent.tools.tools });
    return estimateTokens(JSON.stringify(shownTools(definition)));
  };
  const [all, catalog] = [tokensOf('all'), tokensOf('catalog')];
  return {
    name: 'graphs/tool-tokens',
    what: `tool tokens of a catalog against all ${tools.length} schemas`,
    value: catalog / all,
    unit: 'x',
    bar: { atMost: 0.2 },
    samples: [catalog / all],
    detail: `${catalog} against ${all} tokens`,
  };
}
