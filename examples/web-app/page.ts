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

    document.querySelector('form').addEventListener('submit', async (event) => {
      event.preventDefault();
      const form = event.target;
      const body = JSON.stringify({ text: form.text.value });
      const url = base + '/messages/' + crypto.randomUUID();
      const sent = await fetch(url, { method: 'PUT', headers: { 'content-type': 'application/json' }, body });
      if (!sent.ok) return show((await sent.json()).error, 'user');
      form.reset();
      localStorage.begun = 'yes';
      if (source === null) follow();
    });

    if (localStorage.begun) follow();
  </script>
</html>
`;
