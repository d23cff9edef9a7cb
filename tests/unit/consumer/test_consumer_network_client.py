"""ConsumerNetworkClient: sending requests and completing their futures."""

import math
import threading

import pytest
from interleaving import at_each_step
from model.fetch_log import FetchLog

from kafkacore.consumer._request_future import RequestFuture
from kafkacore.consumer.consumer_network_client import ConsumerClosingError, ConsumerNetworkClient
from kafkacore.consumer.timer import Timer
from kafkacore.errors import (
    InvalidTopicError,
    KafkaConnectionError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
    WakeupError,
)
from kafkacore.protocol.generated.list_offsets import ListOffsetsRequest
from kafkacore.protocol.generated.metadata import MetadataRequest
from kafkacore.structs import Node, TopicPartition

TP = TopicPartition("t", 0)


@pytest.fixture
def parts(make_network_client):
    return make_network_client({TP: FetchLog()}, node_count=2)


@pytest.fixture
def node(parts):
    return parts.cluster.nodes[0]


def timer(parts, timeout_ms=1000):
    return Timer(parts.clock, timeout_ms)


@pytest.mark.kafka("ConsumerNetworkClientTest.send")
@pytest.mark.behaviour(
    "ConsumerNetworkClient", "send queues requests, and poll transmits them, several to one node at once"
)
def test_send_queues_and_poll_transmits(parts, node):
    future = parts.client.send(node, MetadataRequest())
    assert parts.cluster.requests == []
    assert parts.client.pending_request_count(node) == 1
    parts.client.poll(timer(parts))
    parts.client.poll(timer(parts, 0))
    assert future.succeeded()
    assert future.value().message.cluster_id == "model"
    assert not parts.client.has_pending_requests()


@pytest.mark.kafka("ConsumerNetworkClientTest.multiSend", "ConsumerNetworkClientTest.testTrySend")
@pytest.mark.behaviour(
    "ConsumerNetworkClient", "send queues requests, and poll transmits them, several to one node at once"
)
def test_several_requests_to_one_node_go_out_together(parts, node):
    futures = [parts.client.send(node, MetadataRequest()) for _ in range(3)]
    parts.client.poll(timer(parts))
    assert all(future.succeeded() for future in futures)
    assert len(parts.cluster.requests) == 3


@pytest.mark.kafka("ConsumerNetworkClientTest.testDisconnectWithInFlightRequests")
@pytest.mark.behaviour(
    "ConsumerNetworkClient",
    "a disconnect fails the unsent and in-flight requests of that node only",
)
def test_disconnect_fails_requests_in_flight_and_of_no_other_node(parts, node):
    other = parts.cluster.nodes[1]
    parts.cluster.held = {MetadataRequest, ListOffsetsRequest}
    future = parts.client.send(node, MetadataRequest())
    kept = parts.client.send(other, MetadataRequest())
    parts.client.poll(timer(parts, 0))
    parts.cluster.down.add(node.node_id)
    parts.client.poll(timer(parts, 0))
    assert isinstance(future.exception(), KafkaConnectionError)
    assert not kept.is_done()


@pytest.mark.kafka("ConsumerNetworkClientTest.testDisconnectWithUnsentRequests")
@pytest.mark.behaviour(
    "ConsumerNetworkClient",
    "a disconnect fails the unsent and in-flight requests of that node only",
)
def test_failed_connection_fails_what_is_unsent(parts, node):
    parts.cluster.down.add(node.node_id)
    future = parts.client.send(node, MetadataRequest())
    parts.client.poll(timer(parts))
    assert isinstance(future.exception(), KafkaConnectionError)
    assert future.is_retriable()


@pytest.mark.kafka("ConsumerNetworkClientTest.sendWithinBackoffPeriodAfterAuthenticationFailure")
@pytest.mark.behaviour("ConsumerNetworkClient", "a node whose authentication failed is not retried at once")
def test_failed_authentication_is_the_error_of_what_is_unsent(parts, node, monkeypatch):
    error = SaslAuthenticationFailedError("wrong password")
    monkeypatch.setattr(parts.network, "authentication_error", lambda node: error)
    parts.cluster.down.add(node.node_id)
    future = parts.client.send(node, MetadataRequest())
    parts.client.poll(timer(parts))
    assert future.exception() is error


@pytest.mark.kafka(
    "ConsumerNetworkClientTest.testTimeoutUnsentRequest",
    "ConsumerNetworkClientTest.sendExpiry",
)
@pytest.mark.behaviour("ConsumerNetworkClient", "unsent requests expire")
def test_unsent_request_expires(parts, node, monkeypatch):
    monkeypatch.setattr(parts.network, "ready", lambda node, now_ms: False)
    future = parts.client.send(node, MetadataRequest(), timeout_ms=500)
    parts.client.poll(timer(parts, 0))
    assert not future.is_done()
    parts.clock.advance(500)
    parts.client.poll(timer(parts, 0))
    assert isinstance(future.exception(), KafkaTimeoutError)


@pytest.mark.kafka("ConsumerNetworkClientTest.doNotBlockIfPollConditionIsSatisfied")
@pytest.mark.behaviour(
    "ConsumerNetworkClient",
    "poll does not wait if responses are available; if nothing is in flight, it waits for the back-off only",
)
def test_poll_does_not_block_if_the_condition_holds_already(parts, node):
    parts.cluster.held = {MetadataRequest}
    parts.client.send(node, MetadataRequest())
    parts.client.poll(timer(parts), lambda: False)
    assert parts.network.polls == [0.0]


@pytest.mark.kafka("ConsumerNetworkClientTest.blockWhenPollConditionNotSatisfied")
@pytest.mark.behaviour(
    "ConsumerNetworkClient",
    "poll does not wait if responses are available; if nothing is in flight, it waits for the back-off only",
)
def test_poll_blocks_for_the_time_given_while_something_is_in_flight(parts, node):
    parts.cluster.held = {MetadataRequest}
    parts.client.send(node, MetadataRequest())
    parts.client.poll(timer(parts, 200), lambda: True)
    assert parts.network.polls == [200.0]


@pytest.mark.behaviour(
    "ConsumerNetworkClient",
    "poll does not wait if responses are available; if nothing is in flight, it waits for the back-off only",
)
def test_no_single_wait_is_so_long_that_a_ctrl_c_just_before_it_would_be_noticed(parts, node):
    parts.cluster.held = {MetadataRequest}
    future = parts.client.send(node, MetadataRequest())
    assert not parts.client.poll_until(future, timer(parts, 20_000))
    assert max(parts.network.polls) == 500.0


@pytest.mark.kafka("ConsumerNetworkClientTest.blockOnlyForRetryBackoffIfNoInflightRequests")
@pytest.mark.behaviour(
    "ConsumerNetworkClient",
    "poll does not wait if responses are available; if nothing is in flight, it waits for the back-off only",
)
def test_poll_blocks_only_for_the_retry_backoff_if_nothing_is_in_flight(parts):
    parts.client.poll(timer(parts, math.inf), lambda: True)
    assert parts.network.polls == [100]


@pytest.mark.kafka("ConsumerNetworkClientTest.wakeup")
@pytest.mark.behaviour(
    "ConsumerNetworkClient", "a wakeup raises once, even if wakeups were disabled in between"
)
def test_wakeup_raises_once(parts):
    parts.client.wakeup()
    assert parts.network.woken == 1
    with pytest.raises(WakeupError):
        parts.client.poll(timer(parts))
    assert parts.network.polls == [0.0], "poll() must wait before it raises"
    parts.client.poll(timer(parts, 0))


@pytest.mark.behaviour(
    "ConsumerNetworkClient", "a wakeup raises once, even if wakeups were disabled in between"
)
def test_wakeup_waits_while_disabled(parts):
    parts.client.disable_wakeups()
    parts.client.wakeup()
    parts.client.poll(timer(parts, 0))
    parts.client.enable_wakeups()
    with pytest.raises(WakeupError):
        parts.client.poll(timer(parts, 0))


@pytest.mark.kafka("ConsumerNetworkClientTest.wakeup")
@pytest.mark.behaviour(
    "ConsumerNetworkClient", "a wakeup raises once, even if wakeups were disabled in between"
)
def test_wakeup_waits_for_a_poll_that_may_be_woken(parts):
    parts.client.wakeup()
    parts.client.poll_no_wakeup()
    with pytest.raises(WakeupError):
        parts.client.poll(timer(parts, 0))


def test_close_that_is_cancelled_wakes_nothing(parts):
    client = parts.client

    def prepare():
        client.begin_close()
        return client.maybe_trigger_wakeup, client.cancel_close

    for outcome in at_each_step(ConsumerNetworkClient.maybe_trigger_wakeup, prepare):
        assert outcome is None or type(outcome) is ConsumerClosingError
        client.maybe_trigger_wakeup()


def test_close_takes_effect_after_a_wakeup_at_the_same_time(parts):
    client = parts.client

    def prepare():
        client.cancel_close()
        client.wakeup()
        return client.maybe_trigger_wakeup, client.begin_close

    for outcome in at_each_step(ConsumerNetworkClient.maybe_trigger_wakeup, prepare):
        assert isinstance(outcome, WakeupError | ConsumerClosingError)
        with pytest.raises(ConsumerClosingError):
            client.maybe_trigger_wakeup()


@pytest.mark.kafka("ConsumerNetworkClientTest.testDisconnectWakesUpPoll")
@pytest.mark.behaviour("ConsumerNetworkClient", "a pending disconnect wakes the poll")
def test_pending_disconnect_wakes_poll_and_fails_what_was_on_its_way(parts, node):
    parts.cluster.held = {MetadataRequest}
    sent = parts.client.send(node, MetadataRequest())
    parts.client.poll(timer(parts, 0))
    woken = parts.network.woken
    parts.client.disconnect_async(node)
    assert parts.network.woken == woken + 1
    parts.client.poll(timer(parts, 0))
    assert isinstance(sent.exception(), KafkaConnectionError)


@pytest.mark.kafka(
    "ConsumerNetworkClientTest.testAuthenticationExceptionPropagatedFromMetadata",
    "ConsumerNetworkClientTest.testInvalidTopicExceptionPropagatedFromMetadata",
    "ConsumerNetworkClientTest.testTopicAuthorizationExceptionPropagatedFromMetadata",
    "ConsumerNetworkClientTest.testMetadataFailurePropagated",
)
@pytest.mark.behaviour("ConsumerNetworkClient", "metadata errors are raised")
@pytest.mark.parametrize(
    "error", [SaslAuthenticationFailedError, InvalidTopicError, TopicAuthorizationFailedError]
)
def test_errors_of_metadata_are_raised_once(parts, error):
    parts.metadata.error = error("t")
    with pytest.raises(error):
        parts.client.poll(timer(parts, 0))
    parts.client.poll(timer(parts, 0))


@pytest.mark.kafka("ConsumerNetworkClientTest.testFutureCompletionOutsidePoll")
@pytest.mark.behaviour("ConsumerNetworkClient", "futures may be completed by another thread")
def test_future_may_be_completed_by_another_thread(parts):
    future, seen = RequestFuture(), []
    future.add_callbacks(seen.append, lambda error: seen.append(threading.get_ident()))
    other = threading.Thread(target=parts.client.complete_later, args=(future, KafkaConnectionError("x")))
    other.start()
    other.join()
    assert parts.client.poll_until(future, timer(parts))
    assert seen == [threading.get_ident()], "listeners must run on the polling thread"


def test_poll_until_gives_up_at_its_time(parts, node):
    parts.cluster.held = {MetadataRequest}
    future = parts.client.send(node, MetadataRequest())
    started = parts.clock.monotonic_ms()
    assert not parts.client.poll_until(future, timer(parts, 500))
    assert parts.clock.monotonic_ms() - started == 500


def test_listener_of_a_response_may_send_and_poll(parts, node):
    inner = []

    def again(response):
        future = parts.client.send(node, MetadataRequest())
        parts.client.poll_until(future, timer(parts))
        inner.append(future)

    future = parts.client.send(node, MetadataRequest())
    future.add_callbacks(again, lambda error: None)
    parts.client.poll_until(future, timer(parts))
    assert inner[0].succeeded()


@pytest.mark.kafka("ConsumerNetworkClientTest.testAwaitForMetadataUpdateWithTimeout")
def test_metadata_update_is_awaited(parts):
    assert parts.client.await_metadata_update(timer(parts))
    parts.cluster.held_metadata = True
    assert not parts.client.await_metadata_update(timer(parts, 300))


@pytest.mark.kafka("ConsumerNetworkClientTest.testTrySend")
def test_transmitting_calls_no_listener(parts, node):
    future = parts.client.send(node, MetadataRequest())
    parts.client.transmit_sends()
    assert len(parts.cluster.requests) == 1
    assert not future.is_done()
    parts.client.poll(timer(parts, 0))
    assert future.succeeded()


def test_closing_fails_what_is_queued(parts, node):
    future = parts.client.send(node, MetadataRequest())
    parts.client.close()
    assert isinstance(future.exception(), KafkaConnectionError)
    assert parts.network.closed


def test_failed_authentication_is_the_error_of_what_was_on_its_way(parts, node, monkeypatch):
    error = SaslAuthenticationFailedError("expired")
    deliver = parts.network._deliver

    def with_error(request, message, disconnected):
        monkeypatch.setattr(parts.network, "_deliver", deliver)
        sent, request.callback = request.callback, None
        response = deliver(request, None, True)
        response.authentication_error = error
        sent(response)
        return response

    monkeypatch.setattr(parts.network, "_deliver", with_error)
    future = parts.client.send(node, MetadataRequest())
    parts.client.poll_until(future, timer(parts))
    assert future.exception() is error


def test_what_waits_for_a_bootstrap_server_goes_to_a_node_as_soon_as_there_is_one(parts, monkeypatch):
    bootstrap = Node(-1, "host0", 9092)
    ready = parts.network.ready
    monkeypatch.setattr(
        parts.network, "ready", lambda node, now_ms: node.node_id >= 0 and ready(node, now_ms)
    )
    parts.cluster.held_metadata = True
    future = parts.client.send(bootstrap, MetadataRequest())
    parts.client.poll(timer(parts, 0))
    assert parts.client.pending_request_count(bootstrap) == 1
    parts.cluster.held_metadata = False
    parts.metadata.request_update()
    assert parts.client.poll_until(future, timer(parts))
    assert [node_id for node_id, _ in parts.cluster.requests] == [0]
    assert future.value().request.node_id == 0
