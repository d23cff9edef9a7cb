"""The status page in a real browser, next to a running broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from model.browser import Browser

from kafkacore import KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafkacore.testing.embedded_broker import EmbeddedBroker

RECORD = b"x" * 1000


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(
        flush="os", status_port=0, num_partitions=2, group_initial_rebalance_delay_ms=0
    ) as broker:
        yield broker


@pytest.fixture
def producer(broker: EmbeddedBroker) -> Iterator[KafkaProducer]:
    # The client id is arbitrary text.
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, client_id="<i>shop</i>") as producer:
        yield producer


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser, broker: EmbeddedBroker) -> Browser:
    chromium.open(broker.status_url)
    chromium.console()
    return chromium


def produce(producer: KafkaProducer, topic: str, count: int) -> None:
    for _ in range(count):
        producer.send(topic, RECORD)
    producer.flush()


def row(browser: Browser, table: str, name: str) -> list[str]:
    """Return the cells of the row with that name; an empty list if it is missing."""
    return browser.run(
        "return [...document.querySelectorAll('#' + arguments[0] + ' tbody tr')]"
        ".filter((row) => row.cells[0].innerText.trim() === arguments[1])"
        ".flatMap((row) => [...row.cells].map((cell) => cell.innerText.trim()))",
        table,
        name,
    )


def tile(browser: Browser, name: str) -> str:
    return browser.run(
        "return [...document.querySelectorAll('.tile')]"
        ".filter((tile) => tile.lastChild.innerText === arguments[0])"
        ".map((tile) => tile.firstChild.innerText)[0]",
        name,
    )


def test_topics_and_throughput_appear_by_themselves(browser: Browser, producer: KafkaProducer) -> None:
    browser.wait_for("the page", lambda: "There are no topics yet." in browser.text())
    produce(producer, "orders", 50)
    browser.wait_for("the topic", lambda: row(browser, "topics", "orders")[1:3] == ["2", "50"])
    peaks: set[str] = set()

    def moves() -> bool:
        produce(producer, "orders", 20)
        peaks.add(browser.run("return document.querySelector('#line-in').getAttribute('points')"))
        return len(peaks) > 3 and tile(browser, "bytes in") not in (None, "0 B/s")

    browser.wait_for("throughput", moves)
    assert "KiB/s" in browser.text("#scale")
    assert row(browser, "clients", "<i>shop</i>")[1].startswith("kafkacore ")
    assert row(browser, "apis", "Produce")[1] != "0"
    browser.click("#topics button.open")
    browser.wait_for("the partitions", lambda: "high watermark" in browser.text("#topics"))
    assert browser.console() == []


def test_group_shows_how_far_behind_it_is(
    browser: Browser, broker: EmbeddedBroker, producer: KafkaProducer
) -> None:
    produce(producer, "orders", 40)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="billing") as consumer:
        partitions = [TopicPartition("orders", number) for number in range(2)]
        consumer.assign(partitions)
        ends = consumer.end_offsets(partitions)
        consumer.commit({partition: OffsetAndMetadata(end) for partition, end in ends.items()})
        caught_up = ["billing", "classic", "Empty", "0", "0", "orders"]
        browser.wait_for("the group", lambda: row(browser, "groups", "billing") == caught_up)
        produce(producer, "orders", 7)
        browser.wait_for("its lag", lambda: row(browser, "groups", "billing")[4:5] == ["7"])
        browser.click("[data-group=billing] button.open")
        browser.wait_for("its offsets", lambda: "committed" in browser.text("#groups"))
    assert browser.console() == []


def test_group_shows_its_members_and_what_they_have(
    browser: Browser, broker: EmbeddedBroker, producer: KafkaProducer
) -> None:
    produce(producer, "orders", 40)
    with KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="billing",
        client_id="billing-1",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    ) as consumer:
        taken = 0
        while taken < 40:
            taken += sum(len(records) for records in consumer.poll(timeout_ms=1000).values())
        consumer.commit()
        stable = ["billing", "classic", "Stable", "1", "0", "orders"]
        browser.wait_for("the group", lambda: row(browser, "groups", "billing") == stable)
        browser.click("[data-group=billing] button.open")
        browser.wait_for("its member", lambda: "orders 0 1" in browser.text("#groups"))
        assert "billing-1" in browser.text("#groups")
    browser.wait_for("its end", lambda: row(browser, "groups", "billing")[2:4] == ["Empty", "0"])
    assert browser.console() == []


def test_names_are_text_whatever_is_in_them(browser: Browser, broker: EmbeddedBroker) -> None:
    # Kafka's topic names cannot contain this; group ids and client ids can.
    name = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=name, client_id=name) as consumer:
        partition = TopicPartition("orders", 0)
        consumer.assign([partition])
        consumer.commit({partition: OffsetAndMetadata(0)})
        browser.wait_for("the group", lambda: row(browser, "groups", name))
        browser.wait_for("the client", lambda: row(browser, "clients", name))
        assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
        assert "taken" not in browser.run("return document.title")
    assert browser.console() == []


def test_page_of_another_origin_can_neither_read_nor_frame_it(
    browser: Browser, broker: EmbeddedBroker
) -> None:
    # The same port under another host name is another origin.
    browser.open(broker.status_url.replace("127.0.0.1", "localhost") + "healthz")
    read = "return fetch(arguments[0] + 'status.json').then((answer) => answer.text()).catch(() => 'refused')"
    assert browser.run(read, broker.status_url) == "refused"


def test_page_says_when_the_broker_is_gone(browser: Browser, broker: EmbeddedBroker) -> None:
    browser.wait_for("the page", lambda: broker.bootstrap_servers in browser.text("header"))
    broker.kill()
    browser.wait_for("the notice", lambda: "The broker does not respond" in browser.text("#notice"))


def test_reloaded_page_begins_with_what_the_broker_has_kept(
    browser: Browser, broker: EmbeddedBroker, producer: KafkaProducer
) -> None:
    produce(producer, "orders", 200)
    largest = "return (await (await fetch('status.json')).json()).history.bytes_in"
    browser.wait_for(
        "a sample", lambda: max(browser.run(f"return (async () => {{ {largest} }})()"), default=0)
    )
    browser.open(broker.status_url)
    browser.wait_for("the page", lambda: "cluster" in browser.text("header"))
    points = browser.run("return document.querySelector('#line-in').getAttribute('points')").split()
    assert min(float(each.partition(",")[2]) for each in points) < 90, (
        "the page must show a chart when it is opened"
    )


def test_empty_broker_offers_the_first_commands(browser: Browser, broker: EmbeddedBroker) -> None:
    browser.wait_for("the commands", lambda: "kafkacore produce" in browser.text())
    commands = browser.run(
        "return [...document.querySelectorAll('#start pre')].map((each) => each.innerText)"
    )
    assert commands[0] == f"echo hello | kafkacore produce greetings --bootstrap {broker.bootstrap_servers}"
    assert commands[1].startswith("kafkacore consume greetings --from-beginning --bootstrap ")
    said: list[str] = []
    exec(commands[2], {"print": said.append})
    assert said == [b"hello"]
    browser.wait_for("the topic", lambda: row(browser, "topics", "greetings"))
    assert not browser.run("return document.querySelector('#start').checkVisibility()")
    assert browser.console() == []


def test_internal_topics_are_listed_behind_the_others(
    browser: Browser, broker: EmbeddedBroker, producer: KafkaProducer
) -> None:
    produce(producer, "orders", 1)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="billing") as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(0)})
    browser.wait_for("the group of topics", lambda: row(browser, "topics", "1 internal topic"))
    browser.click("#topics tr.group button.open")
    browser.wait_for("the topic", lambda: "__consumer_offsets" in browser.text("#topics"))
    assert "internal" in browser.text("[data-topic=__consumer_offsets] .badge")
    assert browser.console() == []


#: Script that returns elements whose content does not fit.
CUT = (
    "return [...document.querySelectorAll('main *')].filter((each) => each.checkVisibility()"
    " && each.scrollWidth > each.clientWidth + 1 && each.clientWidth > 0)"
    ".map((each) => each.outerHTML.slice(0, 80))"
)


def test_nothing_is_cut_at_any_width(browser: Browser, producer: KafkaProducer) -> None:
    widths = (360, 768, 1400)

    def check() -> None:
        for width in widths:
            browser.be(width, 900, dark=False)
            assert browser.run(CUT) == []
            assert browser.run("return document.documentElement.scrollWidth") <= width

    browser.wait_for("the page", lambda: "kafkacore produce" in browser.text())
    check()
    produce(producer, "a-topic-with-a-name-that-is-longer-than-a-phone-is-wide.and-then-some", 5)
    browser.wait_for("the topic", lambda: "a-topic-with" in browser.text("#topics"))
    browser.click("#topics button.open")
    labels = "return [...document.querySelectorAll('#topics tr.parts td')].map((each) => each.dataset.label)"
    browser.wait_for("the partitions", lambda: "segments" in browser.run(labels))
    check()
    assert browser.console() == []


@pytest.mark.parametrize("dark", [False, True])
def test_page_fits_a_phone(browser: Browser, producer: KafkaProducer, dark: bool) -> None:
    produce(producer, "a-topic-with-a-name-that-is-longer-than-a-phone-is-wide.and-then-some", 5)
    browser.be(390, 844, dark=dark)
    browser.wait_for("the topic", lambda: "a-topic-with" in browser.text("#topics"))
    assert browser.run("return document.documentElement.scrollWidth") == 390
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, ground[4:-1].split(","))) < 80) == dark
