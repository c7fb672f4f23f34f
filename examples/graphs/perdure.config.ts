// Six graphs: perdure graph NAME draws one, perdure run NAME --input JSON runs it.
//   perdure run guarded-desk "Where is order 17?" --config examples/graphs/perdure.config.ts
import { defineConfig } from 'perdure';
import { agentBot } from './agent-bot.js';
import { digest } from './digest.js';
import { guardedDesk } from './guarded-desk.js';
import { lookup } from './lookup.js';
import { payout } from './payout.js';
import { triage } from './triage.js';

export default defineConfig({
  agents: [agentBot, digest, guardedDesk, lookup, payout, triage],
});
