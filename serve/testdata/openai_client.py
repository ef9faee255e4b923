"""Asks a server by OpenAI's client. Arguments: the server's address, and the texts that the models must write, as JSON."""

import asyncio
import base64
import json
import sys

import openai

url, wants = sys.argv[1], json.loads(sys.argv[2])
client = openai.OpenAI(base_url=url, api_key="secret", max_retries=0)
chat = [{"role": "user", "content": "A tensor"}]

assert sorted(m.id for m in client.models.list()) == ["characters", "encoder"]
assert client.models.retrieve("characters").id == "characters"

c = client.completions.create(model="characters", prompt="A tensor", max_tokens=40, temperature=0)
assert c.choices[0].text == wants["completion"], c
assert c.choices[0].finish_reason == "length" and c.usage.completion_tokens == 40 and c.usage.prompt_tokens == 8, c

c = client.completions.create(model="characters", prompt=["A tensor", "The"], max_tokens=10, n=2, seed=1, temperature=1.0, top_p=0.9, extra_body={"top_k": 20})
assert [x.index for x in c.choices] == [0, 1, 2, 3] and all(len(x.text) == 10 for x in c.choices), c

c = client.completions.create(model="characters", prompt="A tensor", max_tokens=5, temperature=0, logprobs=2)
assert "".join(c.choices[0].logprobs.tokens) == wants["completion"][:5] and len(c.choices[0].logprobs.top_logprobs[0]) == 2, c

stop = wants["completion"][12:16]
text = ""
for part in client.completions.create(model="characters", prompt="A tensor", max_tokens=40, temperature=0, stop=[stop], stream=True):
    text += part.choices[0].text
    reason = part.choices[0].finish_reason
assert text == wants["completion"][: wants["completion"].index(stop)] and reason == "stop", (text, reason)

c = client.chat.completions.create(model="characters", messages=chat, max_completion_tokens=40, temperature=0, logprobs=True, top_logprobs=1)
assert c.choices[0].message.content == wants["chat"] and c.choices[0].message.role == "assistant", c
assert c.choices[0].logprobs.content[0].token == wants["chat"][0] and len(c.choices[0].logprobs.content[0].top_logprobs) == 1, c

text, usage = "", None
for part in client.chat.completions.create(model="characters", messages=chat, max_tokens=40, temperature=0, stream=True, stream_options={"include_usage": True}):
    if part.choices:
        text += part.choices[0].delta.content or ""
    usage = part.usage
assert text == wants["chat"] and usage.completion_tokens == 40, (text, usage)

stop = wants["chat"][20:24]
with client.chat.completions.stream(model="characters", messages=chat, max_tokens=40, temperature=0, stop=stop) as s:
    s.until_done()
    assert s.get_final_completion().choices[0].message.content == wants["chat"][: wants["chat"].index(stop)]

e = client.embeddings.create(model="encoder", input="a tensor", encoding_format="base64")
assert len(base64.b64decode(e.data[0].embedding)) == 16, e
for more in ({"encoding_format": "float"}, {}):
    e = client.embeddings.create(model="encoder", input=["a tensor", "the dog"], **more)
    assert len(e.data) == 2 and len(e.data[0].embedding) == 4 and abs(sum(x * x for x in e.data[1].embedding) - 1) < 1e-5, e

for kind, call in (
    (openai.NotFoundError, lambda: client.completions.create(model="other", prompt="x")),
    (openai.BadRequestError, lambda: client.completions.create(model="characters", prompt="x", temperature=5)),
    (openai.BadRequestError, lambda: client.completions.create(model="characters", prompt="x" * 5000)),
    (openai.AuthenticationError, lambda: client.with_options(api_key="wrong").models.list()),
):
    try:
        call()
    except kind as e:
        assert e.body["message"] and e.type == "invalid_request_error", e
    else:
        raise AssertionError(f"got no {kind}")


async def together():
    one = openai.AsyncOpenAI(base_url=url, api_key="secret", max_retries=0)
    texts = await asyncio.gather(*(one.completions.create(model="characters", prompt="A tensor", max_tokens=n, temperature=0) for n in range(1, 40, 3)))
    for n, c in zip(range(1, 40, 3), texts):
        assert c.choices[0].text == wants["completion"][:n], c
    s = await one.completions.create(model="characters", prompt="A tensor", max_tokens=1000, stream=True)
    async for part in s:
        break
    await s.close()
    await one.close()


asyncio.run(together())
print("openai", openai.__version__, "passes")
