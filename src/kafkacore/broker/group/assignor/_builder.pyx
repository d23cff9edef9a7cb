"""Builds target assignments. Members, topics and partitions are numbered; the inner loops run on arrays.

The behaviour is that of Kafka's ``UniformHomogeneousAssignmentBuilder``,
``UniformHeterogeneousAssignmentBuilder`` and ``RangeAssignor``. Where Kafka's result depends on the order of
a hash table, members come in the order of the group, topics in the order of their ids, and partitions in
ascending order. With uniform and the same topics, this order decides which partitions a member gives up or
gets. With uniform and different topics, it decides which of two equally loaded members gets a partition.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping

cimport cython
from cpython.bytes cimport PyBytes_AsStringAndSize
from cpython.long cimport PyLong_FromLong
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_GET_SIZE, PyTuple_New, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcmp, memset

from kafkacore.wire.memory cimport calloc, free, realloc

from kafkacore.broker.group.assignor.interfaces import PartitionAssignorError

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object)

# Maximum number of times that all topics are balanced.
cdef enum:
    MAX_ROUNDS = 16
    NOBODY = -1


# ---- Assignments --------------------------------------------------------------------------------------

@cython.internal
@cython.final
@cython.no_gc
cdef class OneTopic:
    """An immutable mapping of one topic id to partitions.

    Most assignments of a large group are of one topic. A dict takes several times as much memory.
    """

    cdef object topic_id
    cdef tuple partitions

    def __len__(self):
        return 1

    def __iter__(self):
        return iter((self.topic_id,))

    def __contains__(self, topic_id):
        return topic_id == self.topic_id

    def __getitem__(self, topic_id):
        if topic_id != self.topic_id:
            raise KeyError(topic_id)
        return self.partitions

    def __eq__(self, other):
        if not isinstance(other, (dict, OneTopic)):
            return NotImplemented
        return len(other) == 1 and next(iter(other.items())) == (self.topic_id, self.partitions)

    def __repr__(self):
        return repr(self.as_dict())

    cdef dict as_dict(self):
        return {self.topic_id: self.partitions}

    def get(self, topic_id, default=None):
        """Return the partitions if this is the topic's id, or else ``default``."""
        return self.partitions if topic_id == self.topic_id else default

    def keys(self):
        """Return a view of the topic id."""
        return self.as_dict().keys()

    def values(self):
        """Return a view of the partitions."""
        return self.as_dict().values()

    def items(self):
        """Return a view of the topic id and the partitions."""
        return self.as_dict().items()


Mapping.register(OneTopic)


cdef OneTopic one_topic(topic_id, tuple partitions):
    cdef OneTopic made = OneTopic.__new__(OneTopic)
    made.topic_id = topic_id
    made.partitions = partitions
    return made


# ---- Numbers of topics and partitions -----------------------------------------------------------------

@cython.internal
@cython.final
cdef class Numbers:
    """An array of numbers that are initially zero."""

    cdef int32_t *at
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity

    def __cinit__(self, Py_ssize_t count=0):
        self.count = self.capacity = count
        # Allocate one extra number, because calloc may return NULL for an empty block.
        self.at = <int32_t *> calloc(count + 1, sizeof(int32_t))
        if self.at == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.at)

    cdef int append(self, int32_t number) except -1:
        cdef int32_t *block
        if self.count == self.capacity:
            block = <int32_t *> realloc(self.at, (2 * self.capacity + 16) * sizeof(int32_t))
            if block == NULL:
                raise MemoryError
            self.at = block
            self.capacity = 2 * self.capacity + 16
        self.at[self.count] = number
        self.count += 1
        return 0


@cython.internal
@cython.final
cdef class Topics:
    """The topics of a group in the order of Kafka's ``Uuid``. Their partitions are numbered consecutively."""

    cdef list ids
    # Topic id → place of the topic.
    cdef dict places
    # Number of the first partition of each topic, and at the end the number of all partitions.
    cdef Numbers starts
    cdef int32_t partition_count
    cdef object last_id
    cdef int32_t last_place
    cdef int32_t last_place_of_number

    def __cinit__(self, partition_counts):
        cdef Py_ssize_t place
        cdef int64_t total = 0
        self.ids = sorted(partition_counts)
        self.places = {}
        self.starts = Numbers(len(self.ids) + 1)
        for place, topic_id in enumerate(self.ids):
            self.places[topic_id] = place
            self.starts.at[place] = <int32_t> total
            total += <int32_t> partition_counts[topic_id]
            if total > INT32_MAX:
                raise OverflowError(f"{total} partitions are too many for one group")
        self.starts.at[len(self.ids)] = self.partition_count = <int32_t> total

    cdef int32_t place(self, topic_id) except -2:
        """Return the place of a topic, or -1 if the group has no such topic."""
        # Consecutive members often have the same topic, so the last result is cached.
        if topic_id is not self.last_id:
            place = self.places.get(topic_id)
            self.last_place = -1 if place is None else <int32_t> place
            self.last_id = topic_id
        return self.last_place

    cdef int32_t place_of_number(self, int32_t number) noexcept:
        """Return the place of the topic that has the partition with this number."""
        cdef int32_t low = self.last_place_of_number, high = <int32_t> self.starts.count - 2, middle
        # Consecutive members often have the same topic.
        if self.starts.at[low] <= number < self.starts.at[low + 1]:
            return low
        low = 0
        while low < high:
            middle = (low + high + 1) // 2
            if self.starts.at[middle] <= number:
                low = middle
            else:
                high = middle - 1
        self.last_place_of_number = low
        return low

    cdef assignment(self, const int32_t *numbers, Py_ssize_t count):
        """Return the assignment of partitions with ascending numbers."""
        cdef dict made = {}
        cdef Py_ssize_t start = 0, end
        cdef int32_t place, last
        while start < count:
            place = self.place_of_number(numbers[start])
            last = self.starts.at[place + 1]
            end = start + 1
            while end < count and numbers[end] < last:
                end += 1
            partitions = relative(numbers + start, end - start, self.starts.at[place])
            if end - start == count:
                return one_topic(self.ids[place], partitions)
            made[self.ids[place]] = partitions
            start = end
        return made


cdef dict initial(members):
    """Return a dict with the ids of the members, whose values the caller replaces.

    Copying a dict is faster than inserting the keys one by one.
    """
    cdef dict new = dict(members)
    untrack(new)
    return new


cdef inline void untrack(collection) noexcept:
    """Keep the garbage collector from visiting a collection that is in no reference cycle.

    It would visit each element several times while an assignment is computed.
    """
    PyObject_GC_UnTrack(collection)


cdef tuple relative(const int32_t *numbers, Py_ssize_t count, int32_t start):
    """Return the numbers relative to ``start``."""
    cdef tuple made = PyTuple_New(count)
    cdef Py_ssize_t i
    for i in range(count):
        number = PyLong_FromLong(numbers[i] - start)
        Py_INCREF(number)
        PyTuple_SET_ITEM(made, i, number)
    untrack(made)
    return made


cdef tuple consecutive(int32_t first, int32_t end):
    """Return the numbers from ``first`` up to but not including ``end``."""
    cdef tuple made = PyTuple_New(end - first)
    cdef int32_t i
    for i in range(first, end):
        number = PyLong_FromLong(i)
        Py_INCREF(number)
        PyTuple_SET_ITEM(made, i - first, number)
    untrack(made)
    return made


@cython.internal
@cython.final
cdef class Subscriptions:
    """The topics that members subscribe to. Members with equal subscriptions share one number."""

    cdef Topics topics
    cdef str missing
    # frozenset of topic ids → number of the subscription
    cdef dict numbers
    cdef object last_ids
    cdef int32_t last_number
    # The topics of all subscriptions, one after the other, and the end of each subscription. `ends` begins
    # with 0.
    cdef Numbers places
    cdef Numbers ends

    def __cinit__(self, Topics topics not None, str missing not None):
        self.topics = topics
        self.missing = missing
        self.numbers = {}
        self.places = Numbers()
        self.ends = Numbers(1)

    cdef int32_t number(self, frozenset topic_ids) except -1:
        """Return the number of a subscription."""
        cdef int32_t place
        # Consecutive members often have the same subscription, so the last result is cached.
        if topic_ids is self.last_ids:
            return self.last_number
        known = self.numbers.get(topic_ids)
        if known is not None:
            self.last_ids, self.last_number = topic_ids, <int32_t> known
            return self.last_number
        for topic_id in topic_ids:
            place = self.topics.place(topic_id)
            if place < 0:
                raise missing_topic(self.missing, topic_id)
            self.places.append(place)
        self.ends.append(<int32_t> self.places.count)
        self.numbers[topic_ids] = self.ends.count - 2
        return <int32_t> (self.ends.count - 2)


cdef str MISSING_OF_UNIFORM = "Members are subscribed to topic {} which doesn't exist in the topic metadata."
cdef str MISSING_OF_RANGE = "Member is subscribed to a non-existent topic"


cdef missing_topic(str message, topic_id):
    return PartitionAssignorError(message.format(urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")))


# ---- Uniform, members with the same topics ------------------------------------------------------------

def assign_homogeneous(members, partition_counts):
    """Return the uniform assignment of a group whose members all subscribe to the same topics.

    First, each member keeps its partitions up to its quota. Then the other partitions are distributed.
    """
    cdef dict new = initial(members)
    cdef list unfilled = [], unfilled_ids = []
    cdef Numbers rooms = Numbers(), revoked = Numbers(), is_assigned, free_numbers
    cdef Topics topics
    cdef Py_ssize_t left = len(members), i, start
    cdef int32_t quota, extra, room, number
    cdef bint has_extra
    if not members:
        return new
    untrack(unfilled)
    untrack(unfilled_ids)
    topic_ids = next(iter(members.values())).topic_ids
    for topic_id in topic_ids:
        if topic_id not in partition_counts:
            raise missing_topic(MISSING_OF_UNIFORM, topic_id)
    topics = Topics({topic_id: partition_counts[topic_id] for topic_id in topic_ids})
    is_assigned = Numbers(topics.partition_count)
    quota = <int32_t> (topics.partition_count // left)
    extra = <int32_t> (topics.partition_count % left)
    for member_id, member in members.items():
        has_extra = extra > 0
        room = quota + has_extra
        assigned = kept(topics, member.assigned, &room, is_assigned.at, revoked)
        if room and has_extra and left > extra:
            # Leave the extra partition to later members, which may own more partitions.
            room -= 1
            has_extra = False
        extra -= has_extra
        left -= 1
        if room:
            unfilled_ids.append(member_id)
            unfilled.append(assigned)
            rooms.append(room)
        else:
            new[member_id] = assigned
    free_numbers = Numbers()
    for number in range(topics.partition_count):
        if not is_assigned.at[number]:
            free_numbers.append(number)
    for i in range(revoked.count):
        free_numbers.append(revoked.at[i])
    start = 0
    for i, member_id in enumerate(unfilled_ids):
        room = <int32_t> min(rooms.at[i], free_numbers.count - start)
        new[member_id] = with_more(topics, unfilled[i], free_numbers.at + start, room)
        start += room
    return new


cdef kept(Topics topics, assigned, int32_t *room, int32_t *is_assigned, Numbers revoked):
    """Return the partitions that a member keeps, and subtract their number from ``room``."""
    cdef tuple partitions
    cdef dict new
    cdef int32_t place, start, count, partition, left = room[0]
    cdef Py_ssize_t size
    cdef bint is_kept = True
    if not assigned:
        return assigned
    for topic_id, partitions in assigned.items():
        place = topics.place(topic_id)
        if place < 0:
            is_kept = False
            continue
        size = PyTuple_GET_SIZE(partitions)
        start = topics.starts.at[place]
        count = topics.starts.at[place + 1] - start
        for partition in partitions:
            if not 0 <= partition < count:
                is_kept = False
                break
            is_assigned[start + partition] = True
        if size > left:
            is_kept = False
            left = 0
        else:
            left -= <int32_t> size
    if is_kept:
        room[0] = left
        return assigned
    new = {}
    for topic_id, partitions in assigned.items():
        place = topics.place(topic_id)
        if place < 0:
            continue
        start = topics.starts.at[place]
        count = topics.starts.at[place + 1] - start
        # Drop partitions that do not exist. This is only a safeguard: a topic cannot lose partitions, and a
        # re-created topic has another id.
        partitions = tuple([one for one in partitions if 0 <= one < count])
        if partitions and room[0]:
            new[topic_id] = partitions[:room[0]]
        for partition in partitions[room[0]:]:
            revoked.append(start + partition)
        for partition in partitions:
            is_assigned[start + partition] = True
        room[0] = <int32_t> max(0, room[0] - len(partitions))
    return new


cdef with_more(Topics topics, assigned, const int32_t *numbers, Py_ssize_t count):
    """Return an assignment with these partitions added."""
    cdef dict new
    cdef Py_ssize_t start = 0, end
    if not count:
        return assigned
    new = None
    # The numbers ascend, except where the partitions of another member begin.
    while start < count:
        end = start + 1
        while end < count and numbers[end] > numbers[end - 1]:
            end += 1
        more = topics.assignment(numbers + start, end - start)
        if not assigned:
            assigned = more
        else:
            if new is None:
                assigned = new = dict(assigned)
            for topic_id, partitions in more.items():
                before = new.get(topic_id)
                new[topic_id] = partitions if before is None else tuple(sorted(before + partitions))
        start = end
    return assigned


# ---- Uniform, members with different topics -----------------------------------------------------------

# A group in arrays. The members of a topic are sorted by their load once. The least loaded members form a
# range at the start, and the most loaded members a range at the end. The caller gives one partition to each
# member of the first range in turn. These members then have the same load as the members after them, so the
# range is extended by those members. The range at the end is extended in the same way when partitions are
# taken from it.
cdef struct Group:
    # Number of the first partition of each topic.
    const int32_t *starts
    # Where the members of each topic start in `subscribers`.
    const int32_t *subscriber_starts
    const int32_t *subscribers
    # Member of each partition.
    int32_t *owners
    # Number of partitions of each member.
    int32_t *loads
    int32_t *has_changed
    int32_t *counts
    # Partitions of one topic by member, and the range of each member.
    int32_t *by_owner
    int32_t *owner_starts
    int32_t *owner_ends
    # Members of one topic by load.
    int32_t *sorted
    int32_t size
    int32_t least_end
    int32_t least_load
    int32_t next_least
    int32_t most_start
    int32_t most_end
    int32_t most_load
    int32_t next_most


def assign_heterogeneous(members, partition_counts):
    """Return the uniform assignment of a group whose members subscribe to different topics."""
    cdef Topics topics = Topics(partition_counts)
    cdef Subscriptions subscriptions = Subscriptions(topics, MISSING_OF_UNIFORM)
    cdef list listed = list(members.values())
    cdef Py_ssize_t topic_count = len(topics.ids), member_count = len(listed), i
    cdef Numbers subscription_of = Numbers(member_count)
    cdef Numbers subscriber_starts = Numbers(topic_count + 1)
    cdef Numbers owners = Numbers(topics.partition_count)
    cdef Numbers loads = Numbers(member_count), has_changed = Numbers(member_count)
    # The load of a member is at most the number of partitions. The search also reads the next index.
    cdef Numbers counts = Numbers(topics.partition_count + 2)
    cdef Numbers by_owner = Numbers(topics.partition_count)
    cdef Numbers owner_starts = Numbers(member_count + 1), owner_ends = Numbers(member_count + 1)
    cdef Numbers ordered = Numbers(member_count)
    cdef Numbers subscribers, all_places = Numbers(), shared_places = Numbers()
    cdef Group group
    cdef dict new = initial(members)
    for i, member in enumerate(listed):
        subscription_of.at[i] = subscriptions.number(member.topic_ids)
    subscribers = subscribers_of(subscriptions, subscription_of, subscriber_starts)
    memset(owners.at, 0xFF, topics.partition_count * sizeof(int32_t))
    group.starts = topics.starts.at
    group.subscriber_starts = subscriber_starts.at
    group.subscribers = subscribers.at
    group.owners = owners.at
    group.loads = loads.at
    group.has_changed = has_changed.at
    group.counts = counts.at
    group.by_owner = by_owner.at
    group.owner_starts = owner_starts.at
    group.owner_ends = owner_ends.at
    group.sorted = ordered.at
    keep(&group, subscriptions, listed, subscription_of)
    sort_topics(&group, topic_count, all_places, shared_places)
    with nogil:
        assign_free(&group, all_places.at, all_places.count)
        balance(&group, shared_places.at, shared_places.count)
        collect(&group, topics.partition_count, member_count)
    for i, member_id in enumerate(members):
        assigned = listed[i].assigned
        if has_changed.at[i]:
            made = topics.assignment(by_owner.at + owner_starts.at[i], owner_ends.at[i] - owner_starts.at[i])
            if made != assigned:
                assigned = made
        new[member_id] = assigned
    return new


cdef Numbers subscribers_of(Subscriptions subscriptions, Numbers subscription_of, Numbers starts):
    """Return the members of each topic, one topic after the other, and set where each topic starts."""
    cdef const int32_t *ends = subscriptions.ends.at
    cdef const int32_t *places = subscriptions.places.at
    cdef Py_ssize_t topic_count = starts.count - 1, member, i, place
    cdef Numbers next_of = Numbers(topic_count), subscribers
    cdef int64_t total = 0
    for member in range(subscription_of.count):
        total += ends[subscription_of.at[member] + 1] - ends[subscription_of.at[member]]
    if total > INT32_MAX:
        raise OverflowError(f"{total} subscriptions are too many for one group")
    subscribers = Numbers(<Py_ssize_t> total)
    for member in range(subscription_of.count):
        for i in range(ends[subscription_of.at[member]], ends[subscription_of.at[member] + 1]):
            starts.at[places[i] + 1] += 1
    for place in range(topic_count):
        next_of.at[place] = starts.at[place]
        starts.at[place + 1] += starts.at[place]
    for member in range(subscription_of.count):
        for i in range(ends[subscription_of.at[member]], ends[subscription_of.at[member] + 1]):
            subscribers.at[next_of.at[places[i]]] = <int32_t> member
            next_of.at[places[i]] += 1
    return subscribers


cdef int keep(Group *group, Subscriptions subscriptions, list members, Numbers subscription_of) except -1:
    """Let members keep the partitions of the topics that they still subscribe to."""
    cdef Topics topics = subscriptions.topics
    # For each topic, one more than the number of the last subscription that contained the topic.
    cdef Numbers seen_in = Numbers(len(topics.ids))
    cdef int32_t last = -1, subscription, place, start, count, partition
    cdef Py_ssize_t i, j
    cdef tuple partitions
    for i, member in enumerate(members):
        subscription = subscription_of.at[i]
        if subscription != last:
            last = subscription
            for j in range(subscriptions.ends.at[subscription], subscriptions.ends.at[subscription + 1]):
                seen_in.at[subscriptions.places.at[j]] = subscription + 1
        for topic_id, partitions in member.assigned.items():
            place = topics.place(topic_id)
            if place < 0 or seen_in.at[place] != subscription + 1:
                group.has_changed[i] = True
                continue
            start = topics.starts.at[place]
            count = topics.starts.at[place + 1] - start
            for partition in partitions:
                if 0 <= partition < count and group.owners[start + partition] == NOBODY:
                    group.owners[start + partition] = <int32_t> i
                    group.loads[i] += 1
                else:
                    group.has_changed[i] = True
    return 0


cdef int sort_topics(Group *group, Py_ssize_t topic_count, Numbers all_places, Numbers shared) except -1:
    """List topics with many partitions per member first, because their partitions are the hardest to place.

    ``all_places`` gets all topics with members, and ``shared`` only the topics of several members.
    """
    cdef Py_ssize_t place
    cdef int32_t members, partitions
    cdef list keys = []
    for place in range(topic_count):
        members = group.subscriber_starts[place + 1] - group.subscriber_starts[place]
        if members:
            partitions = group.starts[place + 1] - group.starts[place]
            keys.append((-(<double> partitions / members), members, place))
    keys.sort()
    for _, members, place in keys:
        all_places.append(<int32_t> place)
        if members > 1:
            shared.append(<int32_t> place)
    return 0


cdef void assign_free(Group *group, const int32_t *places, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i
    cdef int32_t number
    cdef bint has_begun
    for i in range(count):
        has_begun = False
        for number in range(group.starts[places[i]], group.starts[places[i] + 1]):
            if group.owners[number] != NOBODY:
                continue
            if not has_begun:
                begin(group, places[i])
                has_begun = True
            give(group, number, next_least(group))


cdef void balance(Group *group, const int32_t *places, Py_ssize_t count) noexcept nogil:
    cdef Py_ssize_t i, last_changed = -1
    cdef int _round
    for _round in range(MAX_ROUNDS):
        for i in range(count):
            if i == last_changed:
                # No partition has moved since this topic was last balanced, so all topics are balanced.
                return
            if balance_topic(group, places[i]) or last_changed < 0:
                last_changed = i


cdef bint balance_topic(Group *group, int32_t place) noexcept nogil:
    """Move partitions of a topic from the members with the most partitions to the members with the fewest."""
    cdef int32_t most, number, least
    cdef bint has_moved = False
    if not is_imbalanced(group, place):
        return False
    begin(group, place)
    sort_by_owner(group, place)
    while group.most_load - group.least_load > 1:
        most = next_most(group)
        if most == NOBODY:
            break
        if group.owner_ends[most] == group.owner_starts[most]:
            # The member has no partition of the topic: remove it from the range.
            group.most_end -= 1
            group.sorted[group.next_most + 1] = group.sorted[group.most_end]
            group.sorted[group.most_end] = most
            continue
        group.owner_ends[most] -= 1
        number = group.by_owner[group.owner_ends[most]]
        least = next_least(group)
        if group.most_load - group.least_load <= 1:
            break
        give(group, number, least)
        has_moved = True
    return has_moved


cdef inline void give(Group *group, int32_t number, int32_t member) noexcept nogil:
    cdef int32_t before = group.owners[number]
    if before != NOBODY:
        group.loads[before] -= 1
        group.has_changed[before] = True
    group.owners[number] = member
    group.loads[member] += 1
    group.has_changed[member] = True


cdef bint is_imbalanced(Group *group, int32_t place) noexcept nogil:
    cdef int32_t i, load
    cdef int32_t start = group.subscriber_starts[place]
    cdef int32_t least = group.loads[group.subscribers[start]], most = least
    for i in range(start + 1, group.subscriber_starts[place + 1]):
        load = group.loads[group.subscribers[i]]
        least = min(least, load)
        most = max(most, load)
    return most - least > 1


cdef void begin(Group *group, int32_t place) noexcept nogil:
    """Sort the members of a topic by load; members with the same load keep their order."""
    cdef const int32_t *members = group.subscribers + group.subscriber_starts[place]
    cdef int32_t size = group.subscriber_starts[place + 1] - group.subscriber_starts[place]
    cdef int32_t i, load, next_at, at = 0
    cdef int32_t least = group.loads[members[0]], most = least
    for i in range(1, size):
        load = group.loads[members[i]]
        least = min(least, load)
        most = max(most, load)
    memset(group.counts + least, 0, (most - least + 1) * sizeof(int32_t))
    for i in range(size):
        group.counts[group.loads[members[i]]] += 1
    for load in range(least, most + 1):
        next_at = at + group.counts[load]
        group.counts[load] = at
        at = next_at
    for i in range(size):
        load = group.loads[members[i]]
        group.sorted[group.counts[load]] = members[i]
        group.counts[load] += 1
    group.size = size
    group.least_end = 0
    group.least_load = least - 1
    group.next_least = 0
    group.most_start = group.most_end = size
    group.most_load = most + 1
    group.next_most = size - 1


cdef int32_t next_least(Group *group) noexcept nogil:
    """Return the next member to which the caller gives a partition."""
    cdef int32_t member
    if group.next_least >= group.least_end:
        group.least_load += 1
        while (
            group.least_end < group.size
            and group.loads[group.sorted[group.least_end]] == group.least_load
        ):
            group.least_end += 1
        group.next_least = 0
    member = group.sorted[group.next_least]
    group.next_least += 1
    return member


cdef int32_t next_most(Group *group) noexcept nogil:
    """Return the next member from which the caller takes a partition, or ``NOBODY``."""
    cdef int32_t member
    if group.next_most < group.most_start:
        if group.most_end <= group.most_start and group.most_start > 0:
            group.most_load = group.loads[group.sorted[group.most_start - 1]]
        else:
            group.most_load -= 1
        while group.most_start > 0 and group.loads[group.sorted[group.most_start - 1]] == group.most_load:
            group.most_start -= 1
        group.next_most = group.most_end - 1
    if group.next_most < 0:
        return NOBODY
    member = group.sorted[group.next_most]
    group.next_most -= 1
    return member


cdef void sort_by_owner(Group *group, int32_t place) noexcept nogil:
    """Sort the partitions of a topic by member; the partitions of a member stay in ascending order."""
    cdef int32_t i, member, number, at = 0
    for i in range(group.subscriber_starts[place], group.subscriber_starts[place + 1]):
        group.owner_ends[group.subscribers[i]] = 0
    for number in range(group.starts[place], group.starts[place + 1]):
        group.owner_ends[group.owners[number]] += 1
    for i in range(group.subscriber_starts[place], group.subscriber_starts[place + 1]):
        member = group.subscribers[i]
        group.owner_starts[member] = at
        at += group.owner_ends[member]
        group.owner_ends[member] = group.owner_starts[member]
    for number in range(group.starts[place], group.starts[place + 1]):
        member = group.owners[number]
        group.by_owner[group.owner_ends[member]] = number
        group.owner_ends[member] += 1


cdef void collect(Group *group, int32_t partition_count, Py_ssize_t member_count) noexcept nogil:
    """Sort the partitions of all topics by member."""
    cdef int32_t number, member, at = 0
    for member in range(<int32_t> member_count):
        group.owner_starts[member] = group.owner_ends[member] = at
        at += group.loads[member]
    for number in range(partition_count):
        member = group.owners[number]
        # The topic has no subscriber.
        if member == NOBODY:
            continue
        group.by_owner[group.owner_ends[member]] = number
        group.owner_ends[member] += 1


# ---- Range --------------------------------------------------------------------------------------------

# The fields by which the members are sorted.
cdef struct SortKey:
    # The first bytes of the text as a number.
    uint64_t prefix
    const unsigned char *text
    Py_ssize_t size
    bint is_dynamic
    int32_t member


cdef Numbers java_sorted(list member_ids, list instance_ids):
    """Return the numbers of the members in order: static ones by instance id, the others by member id."""
    cdef Py_ssize_t count = len(member_ids), i, j
    cdef Numbers ordered = Numbers(count)
    cdef list texts = [
        member_id if instance_id is None else instance_id
        for member_id, instance_id in zip(member_ids, instance_ids)
    ]
    cdef SortKey *keys = <SortKey *> calloc(count + 1, sizeof(SortKey))
    if keys == NULL:
        raise MemoryError
    try:
        # Java compares strings by UTF-16 code units. For ASCII strings, this is the order of code points.
        if not "".join(texts).isascii():
            texts = [text.encode("utf-16-be", "surrogatepass") for text in texts]
        for i in range(count):
            keys[i].text = <const unsigned char *> text_bytes(texts[i], &keys[i].size)
            keys[i].is_dynamic = instance_ids[i] is None
            keys[i].member = <int32_t> i
            for j in range(min(keys[i].size, <Py_ssize_t> sizeof(uint64_t))):
                keys[i].prefix |= <uint64_t> keys[i].text[j] << (56 - 8 * j)
        qsort(keys, count, sizeof(SortKey), compare)
        for i in range(count):
            ordered.at[i] = keys[i].member
    finally:
        free(keys)
    return ordered


cdef const char *text_bytes(text, Py_ssize_t *size) except NULL:
    cdef char *found
    if isinstance(text, bytes):
        PyBytes_AsStringAndSize(text, &found, size)
        return found
    return PyUnicode_AsUTF8AndSize(text, size)


cdef int compare(const void *one, const void *other) noexcept nogil:
    cdef const SortKey *left = <const SortKey *> one
    cdef const SortKey *right = <const SortKey *> other
    cdef int order
    if left.is_dynamic != right.is_dynamic:
        return left.is_dynamic - right.is_dynamic
    if left.prefix != right.prefix:
        return 1 if left.prefix > right.prefix else -1
    order = memcmp(left.text, right.text, min(left.size, right.size))
    return order if order else (left.size > right.size) - (left.size < right.size)


def assign_ranges(members, partition_counts):
    """Return ranges of each topic for its members.

    The first members of a topic get one partition more if the partitions cannot be divided equally. The order
    is that of the instance ids of static members, and then of the ids of the other members.
    """
    cdef Topics topics = Topics(partition_counts)
    cdef Subscriptions subscriptions = Subscriptions(topics, MISSING_OF_RANGE)
    cdef Py_ssize_t topic_count = len(topics.ids), member_count = len(members), i, j
    cdef Numbers subscription_of = Numbers(member_count), ordered
    cdef Numbers quotas = Numbers(topic_count), extras = Numbers(topic_count)
    # Where the next range of each topic starts.
    cdef Numbers nexts = Numbers(topic_count)
    # The ranges of all members in order: place of the topic, first partition, end. And where the ranges of
    # each member start and end.
    cdef Numbers ranges = Numbers(), starts = Numbers(member_count), stops = Numbers(member_count)
    # For each subscription, the end of the topics that still have partitions.
    cdef Numbers ends
    cdef int32_t *places
    cdef int32_t place, count, subscription, size, used, member
    cdef list listed = list(members.values()), instance_ids = []
    cdef dict new = initial(members)
    for i, subscribed in enumerate(listed):
        instance_ids.append(subscribed.instance_id)
        subscription_of.at[i] = subscription = subscriptions.number(subscribed.topic_ids)
        for j in range(subscriptions.ends.at[subscription], subscriptions.ends.at[subscription + 1]):
            # Here, ``quotas`` counts the members of each topic. The quotas are computed below.
            quotas.at[subscriptions.places.at[j]] += 1
    ordered = java_sorted(list(members), instance_ids)
    places = subscriptions.places.at
    ends = Numbers(subscriptions.ends.count)
    for i in range(1, ends.count):
        ends.at[i] = subscriptions.ends.at[i]
    for place in range(<int32_t> topic_count):
        if quotas.at[place]:
            count = topics.starts.at[place + 1] - topics.starts.at[place]
            extras.at[place] = count % quotas.at[place]
            quotas.at[place] = count // quotas.at[place]
    for i in range(member_count):
        member = ordered.at[i]
        subscription = subscription_of.at[member]
        used = subscriptions.ends.at[subscription]
        starts.at[member] = <int32_t> ranges.count
        for j in range(used, ends.at[subscription + 1]):
            place = places[j]
            if nexts.at[place] == topics.starts.at[place + 1] - topics.starts.at[place]:
                # All partitions of this topic are assigned.
                continue
            places[used] = place
            used += 1
            size = quotas.at[place]
            if extras.at[place]:
                extras.at[place] -= 1
                size += 1
            if size:
                ranges.append(place)
                ranges.append(nexts.at[place])
                nexts.at[place] += size
                ranges.append(nexts.at[place])
        ends.at[subscription + 1] = used
        stops.at[member] = <int32_t> ranges.count
    for i, (member_id, subscribed) in enumerate(members.items()):
        count = (stops.at[i] - starts.at[i]) // 3
        assigned = subscribed.assigned
        if not has_these(topics, assigned, ranges.at + starts.at[i], count):
            assigned = of_ranges(topics, ranges.at + starts.at[i], count)
        new[member_id] = assigned
    return new


cdef bint has_these(Topics topics, assigned, const int32_t *ranges, Py_ssize_t count) except -1:
    """Return whether a member has these ranges already."""
    cdef tuple partitions
    cdef int32_t place, first, end
    cdef Py_ssize_t i
    cdef bint is_given
    if len(assigned) != count:
        return False
    for topic_id, partitions in assigned.items():
        place = topics.place(topic_id)
        is_given = False
        for i in range(count):
            if ranges[3 * i] == place:
                is_given = True
                break
        if not is_given:
            return False
        first = ranges[3 * i + 1]
        end = ranges[3 * i + 2]
        # The partitions ascend.
        if len(partitions) != end - first or partitions[0] != first or partitions[-1] != end - 1:
            return False
    return True


cdef of_ranges(Topics topics, const int32_t *ranges, Py_ssize_t count):
    """Return the assignment of these ranges."""
    cdef dict new = {}
    cdef Py_ssize_t i
    if count == 1:
        return one_topic(topics.ids[ranges[0]], consecutive(ranges[1], ranges[2]))
    for i in range(count):
        new[topics.ids[ranges[3 * i]]] = consecutive(ranges[3 * i + 1], ranges[3 * i + 2])
    return new
