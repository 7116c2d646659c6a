"""The in-process transport: nothing lost, nothing reordered, nobody waits for a poll."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from time import monotonic
from uuid import uuid4

import pytest
from kombu import Connection, Consumer, Exchange, Producer, Queue

from config import in_process_broker

pytestmark = pytest.mark.timeout(30)


class Listener:
    """One consumer in a thread of its own, as a worker has it."""

    def __init__(self, queue, *, prefetch=0, acknowledges=True):
        self.bodies, self.arrived, self.messages = [], [], []
        self._queue, self._prefetch, self._acknowledges = queue, prefetch, acknowledges
        self._ends, self._is_ready = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        assert self._is_ready.wait(20)
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def _run(self):
        with Connection("inproc://localhost/") as connection, connection.channel() as channel:
            channel.basic_qos(0, self._prefetch, False)
            with Consumer(channel, [self._queue], callbacks=[self._receive], accept=["json"]):
                self._is_ready.set()
                while not self._ends.is_set():
                    try:
                        connection.drain_events(timeout=0.3)
                    except TimeoutError:
                        continue

    def _receive(self, body, message):
        self.arrived.append(monotonic())
        self.bodies.append(body)
        self.messages.append(message)
        if self._acknowledges:
            message.ack()

    def wait_for(self, count, seconds=20):
        until = monotonic() + seconds
        while len(self.bodies) < count and monotonic() < until:
            threading.Event().wait(0.005)
        return len(self.bodies)


@pytest.fixture
def queue():
    in_process_broker.allow_waits(is_allowed=True)
    name = f"test-{uuid4().hex}"
    return Queue(name, Exchange(name), routing_key=name)


def publisher(queue):
    connection = Connection("inproc://localhost/")
    producer = Producer(connection.channel(), exchange=queue.exchange, routing_key=queue.routing_key)
    return lambda body: producer.publish(body, declare=[queue], serializer="json")


@contextmanager
def listening(queue):
    with (
        Connection("inproc://localhost/") as connection,
        connection.channel() as channel,
        Consumer(channel, [queue], accept=["json"]),
    ):
        yield connection


def test_messages_arrive_in_the_order_of_their_publishing(queue):
    with Listener(queue) as listener:
        publish = publisher(queue)
        for number in range(200):
            publish(number)
        assert listener.wait_for(200) == 200
    assert listener.bodies == list(range(200))


def test_a_message_arrives_without_the_wait_of_a_poll(queue):
    delays = []
    with Listener(queue) as listener:
        publish = publisher(queue)
        for number in range(20):
            # Long enough for the consumer to have gone to sleep.
            threading.Event().wait(0.05)
            sent = monotonic()
            publish(number)
            assert listener.wait_for(number + 1) == number + 1
            delays.append(listener.arrived[-1] - sent)
    # About a millisecond on an idle machine; kombu's memory transport takes up to a second.
    assert sorted(delays)[5] < 0.3


def test_many_publishers_lose_nothing(queue):
    with Listener(queue) as listener:

        def publish_some(first):
            publish = publisher(queue)
            for number in range(100):
                publish(first + number)

        threads = [threading.Thread(target=publish_some, args=(number * 100,)) for number in range(10)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert listener.wait_for(1000, seconds=60) == 1000
    assert sorted(listener.bodies) == list(range(1000))


def test_a_consumer_with_a_full_window_goes_on_when_a_message_is_answered(queue):
    with Listener(queue, prefetch=1, acknowledges=False) as listener:
        publish = publisher(queue)
        publish("first")
        publish("second")
        assert listener.wait_for(2, seconds=0.5) == 1
        listener.messages[0].ack()
        assert listener.wait_for(2) == 2
        listener.messages[1].ack()
    assert listener.bodies == ["first", "second"]


def test_a_rejected_message_comes_again(queue):
    with Listener(queue, acknowledges=False) as listener:
        publisher(queue)("again")
        assert listener.wait_for(1) == 1
        listener.messages[0].requeue()
        assert listener.wait_for(2) == 2
        listener.messages[1].ack()
    assert listener.bodies == ["again", "again"]


def test_an_empty_queue_ends_the_wait_in_time(queue):
    with listening(queue) as connection:
        started = monotonic()
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=0.2)
        assert 0.2 <= monotonic() - started < 20


def test_nobody_waits_once_waiting_is_not_allowed(queue):
    with listening(queue) as connection:
        threading.Timer(0.1, in_process_broker.allow_waits, kwargs={"is_allowed": False}).start()
        started = monotonic()
        with pytest.raises(TimeoutError):
            connection.drain_events(timeout=20)
        assert monotonic() - started < 5
    in_process_broker.allow_waits(is_allowed=True)
