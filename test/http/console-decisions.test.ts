import type { Context as ActivityContext } from '@temporalio/activity';
import type { ActivityInterceptors } from '@temporalio/worker';
import type { Browser, Locator } from 'playwright-core';
import { type TestContext, afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import {
  type ConsolePage,
  openConsole,
  rendersAgain,
  startChromium,
} from '../support/console-pages.js';
import { type Gate, gate } from '../support/gate.js';
import { type HttpDesk, openHttpDesk } from '../support/http-desk.js';

/** Decisions of the console that a worker checks before they count, and what a person writes for them. */
let desk: HttpDesk;
let browser: Browser | null;
/** Whether a decision may be made; a test changes it. */
let check: () => boolean = () => true;
/** Where the worker waits before it checks a decision. The check itself may only take five seconds. */
let held: Gate = gate();

const waitsBeforeChecks = ({ info }: ActivityContext): ActivityInterceptors => ({
  inbound: {
    async execute(input, next) {
      if (info.activityType === 'checkDecision') await held.wait();
      return await next(input);
    },
  },
});

beforeAll(async () => {
  held.release();
  const interceptors = { activity: [waitsBeforeChecks] };
  desk = await openHttpDesk(['ann'], {}, { mayDecide: () => check(), interceptors });
  browser = await startChromium();
});
// Also after a failed test, so that the next one can decide.
afterEach(() => held.release());
afterAll(async () => {
  await browser?.close();
  await desk.close();
});

const openPage = async (context: TestContext, hash: string): Promise<ConsolePage> =>
  await openConsole(context, { browser, url: desk.url, hash, width: 360 });

const cardOf = ({ page }: ConsolePage, id: string): Locator =>
  page.locator(`[data-request="${id} r1"]`);

/** The next decisions wait at the gate for their check, which refuses them. */
function refuseAtGate(): void {
  held = gate();
  check = () => false;
}

const REFUSED = 'The decision was refused: ';
const CHECKED = 'A worker checks the decision.';

test.for([
  { where: 'run', euros: 71 },
  { where: 'inbox', euros: 72 },
])(
  'a decision that the check has refused can be made again, with the reason: $where',
  async ({ where, euros }, context) => {
    const { id } = await desk.asking(euros);
    refuseAtGate();
    const opened = await openPage(context, where === 'run' ? `/run/${id}` : '/inbox');
    const card = cardOf(opened, id);
    if (where === 'inbox') await card.locator('.summary').click();
    await card.locator('[data-as=approve]').click();
    await card.getByText(CHECKED).waitFor();
    held.release();
    await card.getByText(REFUSED).waitFor();
    // The same decision, refused for the same reason again.
    await card.locator('[data-as=approve]').click();
    await expect
      .poll(async () => (await desk.client.status(id)).decisions?.length, { timeout: 20_000 })
      .toBe(2);
    await card.locator('[data-as=approve]:enabled').waitFor();
    check = () => true;
    await card.locator('[data-as=approve]').click();
    expect((await desk.client.result(id)).answer).toBe(`done: paid ${euros}`);
    await card.waitFor({ state: 'detached' });
    expect(opened.faults).toEqual([]);
    await opened.page.close();
  },
);

test('a card that is opened while the decision of another person is checked can be decided after its refusal', async (context) => {
  const { id, request } = await desk.asking(73);
  refuseAtGate();
  const decision = { request: 'r1', digest: request.digest, as: 'approve' };
  await desk.send(`/v1/runs/${id}/decisions`, { body: { decisions: [decision] } });
  const opened = await openPage(context, `/run/${id}`);
  const card = cardOf(opened, id);
  await card.locator('[data-as=approve]:disabled').waitFor();
  held.release();
  await card.locator('[data-as=approve]:enabled').waitFor();
  expect(await card.locator('.rows').first().innerText()).toMatch(/last decision\s+refused: /);
  await opened.page.close();
  await desk.client.cancel(id);
});

test('decisions about several requests that the check has refused are shown at each of them', async (context) => {
  const asked = [await desk.asking(74), await desk.asking(75)];
  check = () => false;
  const opened = await openPage(context, '/inbox');
  const cards = asked.map(({ id }) => cardOf(opened, id));
  for (const card of cards) await card.locator('.summary').click();
  for (const card of cards) await card.locator('.exact').waitFor();
  await opened.page.getByRole('button', { name: 'Approve 2' }).click();
  for (const card of cards) await card.getByText('last decision').waitFor();
  check = () => true;
  await opened.page.getByRole('button', { name: 'Deny 2' }).click();
  for (const card of cards) await card.waitFor({ state: 'detached' });
  expect(desk.paid.filter((euros) => euros === 74 || euros === 75)).toEqual([]);
  await opened.page.close();
});

test('an edit with a number that a program would change is not sent; what is typed stays until the decision counts', async (context) => {
  const { id } = await desk.asking(76);
  const opened = await openPage(context, `/run/${id}`);
  const card = cardOf(opened, id);
  const note = card.locator('label.note input');
  await note.fill('76 is too much');
  await card.locator('[data-as=edit]').click();
  const typed = card.locator('textarea[name=arguments]');
  const submit = card.locator('form.decide button.primary');
  await typed.fill('{"euros": 12345678901234567890}');
  await submit.click();
  await card
    .getByText(
      'the number 12345678901234567890 cannot be kept exactly; send it as text: "12345678901234567890"',
    )
    .waitFor();
  expect((await desk.client.status(id)).pending).toMatchObject([{ id: 'r1' }]);
  await typed.fill('{"euros": 77}');
  await rendersAgain(card);
  check = () => false;
  await submit.click();
  await card.getByText(REFUSED).waitFor();
  const beyond = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
  expect(await opened.page.evaluate(beyond)).toBe(0);
  expect([await typed.inputValue(), await note.inputValue()]).toEqual([
    '{"euros": 77}',
    '76 is too much',
  ]);
  check = () => true;
  const sent = opened.page.waitForRequest(/\/decisions$/);
  await submit.click();
  expect((await sent).postDataJSON()).toMatchObject({
    decisions: [{ as: 'edit', arguments: { euros: 77 }, note: '76 is too much' }],
  });
  expect((await desk.client.result(id)).answer).toContain('paid 77');
  expect(opened.faults).toEqual([]);
  await opened.page.close();
});

test('the actions of a plan that a person chooses stay chosen', async (context) => {
  const { id } = await desk.asking(78);
  const opened = await openConsole(context, {
    browser,
    url: desk.url,
    hash: `/run/${id}`,
    // The request as that of a plan.
    prepare: async (page) =>
      await page.route(/\/requests\/r1$/, async (route) => {
        const response = await route.fetch();
        const { view, ...request } = await response.json();
        const action = { tool: 'pay', arguments: [] };
        const actions = [
          { ...action, id: 'a1', asks: true },
          { ...action, id: 'a2', asks: false },
        ];
        const json = { ...request, decisions: ['some'], view: { ...view, actions } };
        await route.fulfill({ response, json });
      }),
  });
  const card = cardOf(opened, id);
  await card.locator('[data-as=some]').click();
  await card.locator('input[value=a1]').check();
  await card.locator('input[value=a2]').uncheck();
  await rendersAgain(card);
  const sent = opened.page.waitForRequest(/\/decisions$/);
  await card.locator('form.decide button.primary').click();
  expect((await sent).postDataJSON()).toMatchObject({
    decisions: [{ as: 'some', actions: ['a1'] }],
  });
  await opened.page.close();
  await desk.client.cancel(id);
});

test('a call whose result a person has given says who', async (context) => {
  const { id, request } = await desk.asking(79);
  const opened = await openPage(context, `/run/${id}`);
  const call = opened.page.locator('li.step.call .label');
  await call.getByText('79').waitFor();
  expect(await call.innerText()).not.toContain('given');
  const decision = { request: 'r1', digest: request.digest, as: 'answer', result: 'paid by hand' };
  await desk.send(`/v1/runs/${id}/decisions`, { body: { decisions: [decision] } });
  await call.getByText(/ · given by ann \(verified by http\)$/).waitFor();
  expect(desk.paid).not.toContain(79);
  await opened.page.close();
});
