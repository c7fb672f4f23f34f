/** The page: it sends messages, and shows replies while they are written. */
export const page = `<!doctype html>
<html lang="en">
  <meta charset="utf-8" />
  <title>Museum guide</title>
  <style>
    body { font: 1rem system-ui; max-width: 40rem; margin: 2rem auto; }
    p { white-space: pre-wrap; }
    .user { color: gray; }
  </style>
  <main></main>
  <form><input name="text" autofocus autocomplete="off" size="40" /> <button>Send</button></form>
  <script type="module">
    // A secret of this visitor: whoever knows it can read the conversation.
    const id = (localStorage.id ??= crypto.randomUUID());
    const base = '/conversations/' + id;
    const main = document.querySelector('main');
    let draft = null;
    let source = null;

    function show(text, role) {
      const p = document.createElement('p');
      p.className = role;
      p.textContent = text;
      main.append(p);
      return p;
    }

    function follow() {
      // The browser connects again by itself, and says what it has seen.
      source = new EventSource(base + '/events');
      source.addEventListener('delta', ({ data }) => {
        const { kind, text } = JSON.parse(data);
        if (kind !== 'text') return;
        draft ??= show('', 'assistant');
        draft.textContent += text;
      });
      source.addEventListener('superseded', () => {
        draft?.remove();
        draft = null;
      });
      source.addEventListener('model-replied', ({ data }) => {
        const { message } = JSON.parse(data);
        draft?.remove();
        draft = null;
        if (message.text !== '') show(message.text, 'assistant');
      });
      source.addEventListener('message-added', ({ data }) => {
        const { message } = JSON.parse(data);
        if (message.origin === undefined) show(message.text, message.role);
      });
      source.addEventListener('run-ended', () => source.close());
    }

    // The same id until these words are delivered, so what is sent twice is one message.
    let message = { text: null, id: null };

    async function put({ text, id }) {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ text });
      const sent = await fetch(base + '/messages/' + id, { method: 'PUT', headers, body });
      return sent.ok ? null : (await sent.json()).error;
    }

    document.querySelector('form').addEventListener('submit', async (event) => {
      event.preventDefault();
      const form = event.target;
      const button = form.querySelector('button');
      const text = form.text.value;
      if (message.text !== text) message = { text, id: crypto.randomUUID() };
      const mine = message;
      button.disabled = true;
      const error = await put(mine).catch(() => 'The server does not answer. Send it again.');
      button.disabled = false;
      if (error !== null) return show(error, 'user');
      if (message === mine) message = { text: null, id: null };
      // What was typed meanwhile stays.
      if (form.text.value === text) form.reset();
      localStorage.begun = 'yes';
      if (source === null) follow();
    });

    if (localStorage.begun) follow();
  </script>
</html>
`;
